// Package boltstore keeps the records of providers in one bbolt file. It is
// the default [agentjob.Store]: local, durable, for one process at a time.
//
// The smallest complete use:
//
//	store, err := boltstore.Open("state/agentjob.db", boltstore.Options{})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	worker, err := agentjob.NewWorker(agentjob.Config{Store: store, Client: client, Handler: handler})
//
// # Lifecycle
//
// An open store holds the lock of a file beside it, ".lock" appended: another process, or another Open in this
// one, gets [agentjob.ErrLeaseHeld] after a second. One file holds any number of
// providers, each under its own lease. Close the store after the workers
// have returned; it gives back what they still hold and makes everything durable. A file that is moved away while
// the store is open makes writes fail until it is back; one that is replaced by another ends the leases. In a test that
// uses testing/synctest, open and close the store inside the bubble.
//
// # Durability
//
// One goroutine writes. It puts what waits into one transaction, so that
// many writers share one fsync. Put returns after it; a
// Put of an ended record and a Delete return at once and are written with the next
// transaction, within about 50 ms, or before Records and Close return.
// Such a late write that fails, on a full disk for example, is kept and tried again with
// every transaction and each second. Until it succeeds, Records and Close report it, and new
// late writes wait for the disk and return their own result. A Put never returns
// the error of another.
//
// # Damage
//
// Open reads the whole file before it uses it, which takes about 0.15 s for 100 MB, and finds any record that was altered, lost or moved: the
// file holds a sum of them. A damaged file is set aside beside the store's path, with ".damaged-" and the time in its name,
// and Open returns a [*DamagedError], again at each start, so that a supervisor that
// restarts the program doesn't begin with an empty store and run tasks a second time. An operator
// decides: restore a backup, or go on without the records by [StartAfresh]. What was set
// aside is never deleted. A whole file of a newer version or of another program is refused
// in the same way and left in place.
//
// # Size
//
// [Options].MaxSize bounds the file. At half of it new claims are refused
// with [agentjob.ErrStoreFull], at three quarters saved replies; ends and deletes go on, and make room. A worker
// with such a store claims nothing, delivers what it has, and claims again when there is room. Full disks
// are met in the same way: what can't be written is refused, and tried again within a second.
//
// # Compaction
//
// Within five minutes after something was deleted or replaced, and at Open and Close, the file is
// replaced by a copy without it, made beside it with ".partial" appended; on Windows at Open and Close
// only. Then it is in no file any more, though the disk may still have it in blocks that are free. Writes go on
// meanwhile. If there is no room for the copy the store goes on as it is and tries again each minute; if
// Close can't compact either, its error says so. A crash in the middle leaves the old file or the new one.
//
// # Errors
//
// [agentjob.ErrLeaseHeld] when another has the file or the provider,
// [agentjob.ErrStoreDamaged] when the file can't be used, [secret.ErrKeyUnknown] when the key file
// is gone that sealed what is in it, [agentjob.ErrLeaseLost] after Close.
//
// # Security
//
// A folder that is not there is made private (0700); one that others may enter is refused. The file is 0600. What holds chat text is
// sealed with the keys of [Options]; without it, ids, states and times are
// readable. What was deleted leaves the file when that is compacted, as above.
//
// # Compatibility
//
// The file carries a format version, today 2. Network file systems are not
// supported: their locks and syncs can't be relied on.
package boltstore
