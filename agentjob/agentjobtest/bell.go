package agentjobtest

// A bell wakes those who wait for a change of one thing: an agent's tasks, a
// message, the request log. One for everything would wake thousands for each change.
// The server's lock guards it.
type bell struct{ rung chan struct{} }

// wait returns a channel that closes at the next ring.
func (b *bell) wait() <-chan struct{} {
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
