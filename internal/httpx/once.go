package httpx

import "context"

// once sends a request that may not be sent again, as a worker does all the time. It goes
// around the retrying loop and http.Client, which are there for what it never does, second
// attempts and redirects: a poll that waits would take twice the memory with them.
func (c *Client) once(ctx context.Context, r *Request) (*Answer, error) {
	limit := min(r.Policy.Attempt, r.Policy.Total)
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := c.request(bounded, r)
	if err != nil {
		return nil, clean(err)
	}
	if c.jar != nil {
		for _, cookie := range c.jar.Cookies(req.URL) {
			req.AddCookie(cookie)
		}
	}
	x := exchange{request: r, limit: limit, next: c.next, log: c.log}
	resp, err := x.send(ctx, req)
	switch {
	case err == nil:
		if cookies := resp.Cookies(); c.jar != nil && len(cookies) > 0 {
			c.jar.SetCookies(req.URL, cookies)
		}
		return x.answer, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		return nil, clean(err)
	}
}
