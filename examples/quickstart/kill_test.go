package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/agentjobtest"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
)

// A killing is a platform, the real program as its provider, and one customer.
type killing struct {
	t        *testing.T
	ctx      context.Context
	platform *agentjobtest.Server
	state    string
	agent    *agentjobtest.Agent
	provider *process
}

func newKilling(t *testing.T) *killing {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	k := &killing{t: t, ctx: ctx, platform: agentjobtest.NewServer(agentjobtest.Settings{}), state: t.TempDir() + "/state"}
	t.Cleanup(k.platform.Close)
	k.start()
	registration, err := agentjob.LoadRegistration(registrationFile(k.state))
	require.NoError(t, err)
	k.agent = k.platform.Agent(registration.AgentID)
	require.NotNil(t, k.agent)
	return k
}

func (k *killing) start() {
	k.provider = start(k.t, "--platform", k.platform.URL, "--state", k.state)
	k.provider.awaitLine("provider  online")
	k.provider.offset = 0 // a saved reply may have been delivered before
}

func (k *killing) send(text string) *agentjobtest.Message {
	k.t.Helper()
	m, err := k.platform.User("Eve").Chat(k.agent).Send(text)
	require.NoError(k.t, err)
	return m
}

// end drains the provider and returns the record of a task from its store.
func (k *killing) end(taskID string) agentjob.Record {
	k.t.Helper()
	require.NoError(k.t, k.provider.cmd.Process.Signal(os.Interrupt))
	require.Equal(k.t, 0, k.provider.wait(), k.provider.stdout())
	return k.record(taskID)
}

// record reads the store of a provider that has ended.
func (k *killing) record(taskID string) agentjob.Record {
	k.t.Helper()
	store, err := boltstore.Open(recordsFile(k.state), boltstore.Options{})
	require.NoError(k.t, err)
	lease, err := store.Acquire(k.ctx, k.agent.ID)
	require.NoError(k.t, err)
	defer func() { assert.NoError(k.t, errors.Join(lease.Close(), store.Close())) }()
	for record, err := range lease.Records(k.ctx) {
		require.NoError(k.t, err)
		if record.TaskID == taskID {
			return record
		}
	}
	k.t.Fatalf("no record of task %s", taskID)
	return agentjob.Record{}
}

func TestKilledBeforeTheReplyIsSaved(t *testing.T) {
	k := newKilling(t)
	m := k.send("think 1h")
	k.provider.awaitLine("provider  claimed     " + short(m.ID))
	k.provider.kill()
	assert.Equal(t, agentjob.StateClaimed, k.record(m.ID).State)

	k.start()
	k.platform.HandOutAgain(m.ID) // even then it is not run again
	k.provider.awaitLine("provider  duplicate   " + short(m.ID))
	next := k.send("add milk")
	reply, err := next.WaitReply(k.ctx)
	require.NoError(t, err, "the provider works on")
	assert.Equal(t, "On your list (1): milk.", reply)

	assert.Equal(t, agentjobtest.StatusProcessing, m.Status(), "the customer gets no reply")
	record := k.end(m.ID)
	assert.Equal(t, agentjob.StateEnded, record.State)
	assert.Equal(t, agentjob.EndInterrupted, record.End)
	assert.Equal(t, agentjobtest.Counts{Claims: 2, Charges: 1}, m.Counts(), "the second claim is the one that the test ordered")
	assert.Contains(t, k.provider.stdout(), "provider  interrupted "+short(m.ID))
	assert.NotContains(t, k.provider.stdout(), "provider  claimed     "+short(m.ID))
}

func TestKilledAfterTheReplyIsSaved(t *testing.T) {
	for name, c := range map[string]struct {
		fault   agentjobtest.FaultKind
		repeats int
	}{
		"and before the platform has it":                      {agentjobtest.CutBefore, 0},
		"and the platform has it but the provider can't know": {agentjobtest.CutAfter, 1},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKilling(t)
			fault := k.platform.Inject(agentjobtest.Fault{Route: agentjobtest.RouteRespond, Kind: c.fault})
			m := k.send("add milk")
			require.NoError(t, k.platform.Await(k.ctx, agentjobtest.RouteRespond, 1))
			k.provider.kill()
			saved := k.record(m.ID)
			assert.Equal(t, agentjob.StateSaved, saved.State)
			assert.JSONEq(t, `{"text":"On your list (1): milk."}`, string(saved.Content.Response))
			repeats := m.Counts().Repeats // tries before the kill may be more than one
			fault.Clear()

			k.start()
			reply, err := m.WaitReply(k.ctx)
			require.NoError(t, err)
			assert.Equal(t, "On your list (1): milk.", reply)
			k.provider.awaitLine("provider  delivered   " + short(m.ID))

			record := k.end(m.ID)
			assert.Equal(t, agentjob.StateEnded, record.State)
			assert.Equal(t, agentjob.EndDelivered, record.End)
			assert.True(t, record.Content.IsZero(), "the text of a delivered reply is dropped")
			assert.Equal(t, agentjobtest.Counts{Claims: 1, Deliveries: 1, Repeats: repeats + c.repeats, Charges: 1}, m.Counts())
			for _, r := range k.platform.Requests() {
				if r.Route == agentjobtest.RouteRespond {
					assert.Equal(t, string(saved.Content.Response), string(r.Body), "the same bytes every time")
				}
			}
		})
	}
}
