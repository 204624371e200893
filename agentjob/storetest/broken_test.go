package storetest

import (
	"context"
	"time"

	"github.com/agentjob/agentjob-go/agentjob"
)

// brokenStores are stores with one error each, and the checks that must reject them.
var brokenStores = map[string]struct {
	wrap     func(agentjob.Store) agentjob.Store
	by       []string
	patience time.Duration // of stores that hang
}{
	"gives a lease twice":               {leaseTwice, []string{"OneLeaseOfAProvider", "OneOfManyAcquiresWins", "LeaseOutlivesItsContext"}, 0},
	"waits for the other's lease":       {func(s agentjob.Store) agentjob.Store { return waiter{s} }, []string{"OneLeaseOfAProvider"}, time.Second},
	"closes the next holder's lease":    {closesTheNext, []string{"OneLeaseOfAProvider"}, 0},
	"ends leases with contexts":         {func(s agentjob.Store) agentjob.Store { return contextLeases{s} }, []string{"LeaseOutlivesItsContext"}, 0},
	"writes after Close":                {eachLease(func(l agentjob.Lease) agentjob.Lease { return &neverClosed{l} }), []string{"ClosedLeaseChangesNothing", "LostLeaseChangesNothing"}, 0},
	"doesn't tell of a loss":            {eachLease(func(l agentjob.Lease) agentjob.Lease { return lostSays{l, make(chan struct{})} }), []string{"LostLeaseChangesNothing"}, time.Second},
	"is lost from the start":            {eachLease(func(l agentjob.Lease) agentjob.Lease { return lostSays{l, closed()} }), []string{"LostStaysOpenWhileHeld"}, 0},
	"hides the context's end":           {eachLease(func(l agentjob.Lease) agentjob.Lease { return deaf{l} }), []string{"CancelledContextsDontBlock"}, 0},
	"forgets fingerprints":              {func(s agentjob.Store) agentjob.Store { return forgetful{s} }, []string{"FingerprintsNeedNoLease", "EverythingSurvivesARestart"}, 0},
	"binds until the lease is closed":   {func(s agentjob.Store) agentjob.Store { return &leaseBound{Store: s} }, []string{"FingerprintsNeedNoLease", "EverythingSurvivesARestart"}, 0},
	"acknowledges before it has it":     {acknowledgesEarly, []string{"CloseBesideWrites"}, 0},
	"loses late writes":                 {eachLease(func(l agentjob.Lease) agentjob.Lease { return losesLate{l} }), []string{"RecordsShowEarlierWrites", "LateWritesSurviveInOrder"}, 0},
	"takes empty for nil":               {eachLease(func(l agentjob.Lease) agentjob.Lease { return emptyIsNil{l} }), []string{"RecordsComeBackExactly"}, 0},
	"keeps times in seconds":            {eachLease(func(l agentjob.Lease) agentjob.Lease { return seconds{l} }), []string{"RecordsComeBackExactly", "PutReplaces"}, 0},
	"keeps what is not given anew":      {eachLease(func(l agentjob.Lease) agentjob.Lease { return merges{l} }), []string{"PutReplaces"}, 0},
	"cuts ids at NUL":                   {eachLease(func(l agentjob.Lease) agentjob.Lease { return cutsIDs{l} }), []string{"EveryIDIsPossible"}, 0},
	"takes records of anybody":          {eachLease(func(l agentjob.Lease) agentjob.Lease { return takesAll{l} }), []string{"PutOfAnotherProviderIsRefused", "FailedPutKeepsTheOldRecord"}, 0},
	"keeps the caller's bytes":          {eachLease(func(l agentjob.Lease) agentjob.Lease { return &sharesBytes{Lease: l} }), []string{"PutCopies"}, 0},
	"deletes first, then writes":        {eachLease(func(l agentjob.Lease) agentjob.Lease { return deletesFirst{l} }), []string{"FailedPutKeepsTheOldRecord", "FullDiskKeepsWhatIsThere"}, 0},
	"deletes by writing":                {eachLease(func(l agentjob.Lease) agentjob.Lease { return deletesByWriting{l} }), []string{"FullDiskKeepsWhatIsThere"}, 0},
	"errs on deleting what isn't there": {eachLease(func(l agentjob.Lease) agentjob.Lease { return errsOnAbsent{l} }), []string{"DeleteRemoves"}, 0},
	"reads other providers by prefix":   {func(s agentjob.Store) agentjob.Store { return &prefixes{Store: s, leases: map[string]agentjob.Lease{}} }, []string{"ProvidersAreSeparate"}, 0},
	"reads while others write":          {eachLease(func(l agentjob.Lease) agentjob.Lease { return tornReads{l, make(chan struct{})} }), []string{"RecordsAreOfOneMoment"}, 0},
	"yields under its lock":             {eachLease(func(l agentjob.Lease) agentjob.Lease { return &yieldsLocked{Lease: l} }), []string{"RecordsAllowWritesAndBreak"}, time.Second},
	"skips what it can't read":          {eachLease(func(l agentjob.Lease) agentjob.Lease { return skipsErrors{l} }), []string{"UnreadableRecordIsAnError"}, 0},
	"loses one of two writes at once":   {eachLease(func(l agentjob.Lease) agentjob.Lease { return &losesBusy{Lease: l} }), []string{"ManyWriters"}, 0},
}

// eachLease breaks the leases of a store.
func eachLease(broken func(agentjob.Lease) agentjob.Lease) func(agentjob.Store) agentjob.Store {
	return func(s agentjob.Store) agentjob.Store { return leaseWrapper{s, broken} }
}

type leaseWrapper struct {
	agentjob.Store
	wrap func(agentjob.Lease) agentjob.Lease
}

func (s leaseWrapper) Acquire(ctx context.Context, provider string) (agentjob.Lease, error) {
	lease, err := s.Store.Acquire(ctx, provider)
	if err != nil {
		return nil, err
	}
	return s.wrap(lease), nil
}
