// Package httpx sends a bounded request to one host under a [Policy].
//
// It keeps four things true that go-retryablehttp, on which it stands, leaves to its
// user: what may have taken effect is not sent again on its own, a pause that the
// server asks for is bounded, the last answer is never lost, and no error text
// carries the query of a URL.
package httpx
