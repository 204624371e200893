package storetest

// A check holds a store to sentences of the interface's documentation.
type check struct {
	name  string
	needs string // a function of the Harness, "" for none
	run   func(*world)
	says  []string // the sentences
}

// checks is the suite.
var checks = []check{
	{"OneLeaseOfAProvider", "", oneLeaseOfAProvider, []string{takesLease, oneLease, closeGivesUp, closeAgain}},
	{"OneOfManyAcquiresWins", "", oneOfManyAcquiresWins, []string{exclusive, oneLease, concurrentStore}},
	{"LeaseOutlivesItsContext", "", leaseOutlivesItsContext, []string{leaseLives}},
	{"ClosedLeaseChangesNothing", "", closedLeaseChangesNothing, []string{afterTheEnd}},
	{"LostLeaseChangesNothing", "Lose", lostLeaseChangesNothing, []string{afterTheEnd, lostCloses}},
	{"LostStaysOpenWhileHeld", "", lostStaysOpenWhileHeld, []string{lostCloses, neverLost}},
	{"CancelledContextsDontBlock", "", cancelledContextsDontBlock, []string{unknownOutcome}},
	{"FingerprintsNeedNoLease", "", fingerprintsNeedNoLease, []string{lastBound, noLease, binds}},
	{"CloseBesideWrites", "", closeBesideWrites, []string{concurrentLease, closeGivesUp, afterTheEnd}},

	{"RecordsComeBackExactly", "", recordsComeBackExactly, []string{everyRecord, exactTimes}},
	{"EveryIDIsPossible", "", everyIDIsPossible, []string{inserts, everyRecord, lastBound}},
	{"PutReplaces", "", putReplaces, []string{inserts}},
	{"PutOfAnotherProviderIsRefused", "", putOfAnotherProviderIsRefused, []string{exactTimes}},
	{"PutCopies", "", putCopies, []string{survivesPower}},
	{"FailedPutKeepsTheOldRecord", "", failedPutKeepsTheOldRecord, []string{oldStays}},
	{"FullDiskKeepsWhatIsThere", "Fill", fullDiskKeepsWhatIsThere, []string{oldStays, deleteOnFullDisk}},
	{"DeleteRemoves", "", deleteRemoves, []string{deletes}},
	{"ProvidersAreSeparate", "", providersAreSeparate, []string{takesLease, everyRecord}},
	{"RecordsShowEarlierWrites", "", recordsShowEarlierWrites, []string{everyRecord}},
	{"RecordsAreOfOneMoment", "", recordsAreOfOneMoment, []string{everyRecord}},
	{"RecordsAllowWritesAndBreak", "", recordsAllowWritesAndBreak, []string{everyRecord, concurrentLease}},
	{"UnreadableRecordIsAnError", "Damage", unreadableRecordIsAnError, []string{unreadable}},
	{"ManyWriters", "", manyWriters, []string{concurrentLease}},

	{"EverythingSurvivesARestart", "Reopen", everythingSurvivesARestart, []string{keeps, offline, binds, survivesPower}},
	{"LateWritesSurviveInOrder", "Reopen", lateWritesSurviveInOrder, []string{survivesPower, deleteOnFullDisk, closeGivesUp}},
}

// The sentences of agentjob.Store and agentjob.Lease. A test compares them with the source.
const (
	keeps           = "A Store keeps the records of one or more providers through crashes and restarts."
	concurrentStore = "Implementations are safe for concurrent use; the suite in agentjob/storetest tests every sentence of this file."

	takesLease = "Acquire takes the lease of a provider, the agent id that all its records belong to."
	oneLease   = "At most one lease of a provider is open at a time, on all machines that share the store; while another holds it " +
		"Acquire returns an error that matches [ErrLeaseHeld], within two seconds."
	leaseLives = "The lease lives until Close or Lost, not until ctx ends."
	lastBound  = `Provider returns the provider last bound to a key's fingerprint, or "" if there is none.`
	offline    = "It lets a worker start while the platform can't be reached."
	noLease    = "It needs no lease."
	binds      = "BindProvider durably binds a key's fingerprint to a provider."

	exclusive       = "A Lease is the exclusive right to a provider's records."
	concurrentLease = "Its methods may be called concurrently."
	afterTheEnd     = "After Lost is closed, or after Close, Put and Delete change nothing and return an error that matches [ErrLeaseLost]."

	everyRecord = "Records yields every record of the provider, in no particular order, as of one moment at or after the call: all earlier Puts and Deletes show."
	unreadable  = "A record that can't be read yields an error and ends the iteration."

	inserts       = "Put inserts or replaces the record with the same TaskID."
	exactTimes    = "The record's Provider must be the lease's; times are kept to the nanosecond, in UTC."
	survivesPower = "It returns when the record would survive a power cut, except that for a record in [StateEnded] it may return earlier: " +
		"such a write may be lost in a crash, never reordered before an earlier one, and is on disk after Close."
	oldStays       = "On an error the old record is still there."
	unknownOutcome = "If ctx ends first the outcome is unknown: the write may or may not happen."

	deletes          = "Delete removes a record; an absent one is no error."
	deleteOnFullDisk = "Like an ended record it may become durable later, and it works on a full disk."

	lostCloses   = "Lost is closed when the lease was taken away or can't be kept."
	neverLost    = "A store whose leases can't be lost returns a channel that is never closed."
	closeGivesUp = "Close makes everything durable and gives the lease up."
	closeAgain   = "It may be called again, then doing nothing."
)
