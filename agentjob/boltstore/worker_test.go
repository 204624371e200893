package boltstore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
	"github.com/agentjob/agentjob-go/connections/secret"
)

// A provider is the whole of it: platform, store and worker, in a bubble's time.
type provider struct {
	t     *testing.T
	srv   *agentjobtest.Server
	agent *agentjobtest.Agent
	path  string
	opts  boltstore.Options
}

func inBubble(t *testing.T, opts boltstore.Options, test func(p *provider)) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		srv := agentjobtest.NewPipeServer(agentjobtest.Settings{MaxConcurrentChats: 1000})
		t.Cleanup(srv.Close)
		test(&provider{t, srv, srv.AddAgent("Test agent"), path, opts})
	})
}

// serve does what a program does at its start: it opens the store and runs a worker on it. The error is of either.
func (p *provider) serve(handler agentjob.HandlerFunc) (stop func(), failed <-chan error) {
	done := make(chan error, 1)
	store, err := boltstore.Open(p.path, p.opts)
	if err != nil {
		done <- err
		return func() {}, done
	}
	client, err := agentjob.NewClient(agentjob.ClientConfig{BaseURL: p.srv.URL, APIKey: secret.New(p.agent.Key), HTTPClient: p.srv.Client()})
	require.NoError(p.t, err)
	worker, err := agentjob.NewWorker(agentjob.Config{Client: client, Store: store, Handler: handler, Concurrency: 2, Retention: 2 * time.Hour})
	require.NoError(p.t, err)
	ended := make(chan error, 1)
	go func() {
		err := worker.Run(context.Background())
		ended <- err
		done <- err
	}()
	return func() {
		worker.Drain()
		<-ended
		require.NoError(p.t, store.Close())
		synctest.Wait()
	}, done
}

func (p *provider) send(text string) *agentjobtest.Message {
	m, err := p.srv.User("alice").Chat(p.agent).SendMessage(agentjobtest.MessageOptions{Text: text, Queue: true})
	require.NoError(p.t, err)
	return m
}

func (p *provider) reply(m *agentjobtest.Message) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	reply, err := m.WaitReply(ctx)
	require.NoError(p.t, err)
	return reply
}

// keep puts refused replies into the store, as an earlier run left them.
func (p *provider) keep(n int, text string) {
	store, err := boltstore.Open(p.path, p.opts)
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, store.Close()) }()
	lease, err := store.Acquire(p.t.Context(), p.agent.ID)
	require.NoError(p.t, err)
	for i := range n {
		require.NoError(p.t, lease.Put(p.t.Context(), agentjob.Record{
			Provider: p.agent.ID, TaskID: fmt.Sprint("kept ", i), State: agentjob.StateEnded, End: agentjob.EndRejected, Status: 422,
			ClaimedAt: time.Now(), EndedAt: time.Now(), Content: agentjob.Content{Response: []byte(text)},
		}))
	}
}

func (p *provider) polls() (n int) {
	for _, r := range p.srv.Requests() {
		if r.Route == agentjobtest.RoutePoll {
			n++
		}
	}
	return n
}

func answer(_ context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
	return agentjob.Text("You said: " + task.LastUserText()), nil
}

func TestWorkerClaimsNothingOnADamagedStoreUntilTold(t *testing.T) {
	inBubble(t, boltstore.Options{}, func(p *provider) {
		stop, _ := p.serve(answer)
		require.Equal(t, "You said: one", p.reply(p.send("one")))
		stop()
		data, err := os.ReadFile(p.path)
		require.NoError(t, err)
		data[len(data)/2] ^= 1
		clear(data[3*os.Getpagesize():])
		require.NoError(t, os.WriteFile(p.path, data, 0o600))

		polls := p.polls()
		waiting := p.send("two")
		for range 5 { // by a supervisor
			_, failed := p.serve(answer)
			require.ErrorIs(t, <-failed, agentjob.ErrStoreDamaged)
			time.Sleep(time.Minute) // in the bubble's time
		}
		require.Equal(t, polls, p.polls(), "nothing is claimed")

		_, err = boltstore.StartAfresh(p.path)
		require.NoError(t, err)
		stop, _ = p.serve(answer)
		require.Equal(t, "You said: two", p.reply(waiting))
		stop()
	})
}

func TestWorkerClaimsNothingWhenARecordCantBeRead(t *testing.T) {
	inBubble(t, boltstore.Options{}, func(p *provider) {
		key := secret.NewKey()
		p.opts.Keys = secret.KeyFunc(func(context.Context) ([]secret.Key, error) { return []secret.Key{key}, nil })
		p.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 422, Body: `{"error":"no"}`, Times: 1}) // its text is kept
		stop, _ := p.serve(answer)
		refused := p.send("one")
		require.NoError(t, refused.WaitClaim(context.Background()))
		time.Sleep(time.Minute)
		stop()

		key = secret.NewKey() // not the one that it is sealed with
		polls := p.polls()
		for range 3 {
			stop, failed := p.serve(answer)
			err := <-failed
			require.ErrorIs(t, err, agentjob.ErrStoreDamaged)
			require.ErrorIs(t, err, secret.ErrKeyUnknown)
			stop()
		}
		require.Equal(t, polls, p.polls(), "nothing is claimed")
		setAside, err := boltstore.StartAfresh(p.path)
		require.NoError(t, err)
		require.Len(t, setAside, 1)
		stop, _ = p.serve(answer)
		require.Equal(t, "You said: two", p.reply(p.send("two")))
		stop()
	})
}

// Replies that the platform refuses are kept for some hours. Here they fill the store.
func TestWorkerOnAFullStoreDeliversAndClaimsAgain(t *testing.T) {
	inBubble(t, boltstore.Options{MaxSize: 32 << 20}, func(p *provider) {
		long := strings.Repeat("ä", agentjob.MaxReplyUnits)
		p.keep(50, long)
		release := make(chan struct{})
		stop, _ := p.serve(func(ctx context.Context, task *agentjob.Task) (*agentjob.Reply, error) {
			if task.LastUserText() == "slow" {
				<-release
				return agentjob.Text("at last"), nil
			}
			return agentjob.Text(long), nil
		})
		slow := p.send("slow")
		require.NoError(t, slow.WaitClaim(context.Background()))
		refusing := p.srv.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Status: 422, Body: `{"error":"no"}`})
		var waiting *agentjobtest.Message
		for n := 0; waiting == nil; n++ {
			require.Less(t, n, 200)
			m := p.send(fmt.Sprint("fill ", n))
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if m.WaitClaim(ctx) != nil {
				waiting = m
			}
			cancel()
		}
		polls := p.polls()
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, p.polls(), polls+1, "it has stopped claiming")

		refusing.Clear()
		close(release)
		require.Equal(t, "at last", p.reply(slow), "what was claimed is still delivered")
		time.Sleep(4 * time.Hour) // the kept replies have had their time
		require.Equal(t, long, p.reply(p.send("again")))
		stop()
	})
}
