// Package filestore keeps the records of providers as files in a folder, one a record, which a
// person can read: an [agentjob.Store] that is local, durable, and for one process at a time.
//
// The smallest complete use:
//
//	store, err := filestore.Open("state/agentjob", filestore.Options{})
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	worker, err := agentjob.NewWorker(agentjob.Config{Store: store, Client: client, Handler: handler})
//
// # When to prefer it
//
// Package boltstore is the default. Prefer this one if an operator should see with ls, cat and jq what waits and
// why, or if bbolt is not wanted in the program. It is made for a task or a few at a time: each
// Put writes and syncs a file and its folder, one after the other for each provider, so many
// writers get no faster than one. Records reads all records of a provider into memory.
//
// # The folder
//
//	lock                                    held while the store is open
//	format                                  the version, a number
//	key                                     the sealing key, unless Options has another source
//	providers/PROVIDER/TASK.record          a record
//	fingerprints/FINGERPRINT.provider       the provider of a key
//	damaged/...                             files that were set aside
//
// Names are ids with unusual bytes as %xx; long ones are cut and carry a hash. The first line of a record
// is JSON: ids, state, times, how it ended. After the line comes the sealed content, if there is any:
//
//	head -qn 1 state/agentjob/providers/*/*.record | jq .
//
// Nothing but this package may write there, with one exception: whole files may be moved away, while the store is not open.
//
// # Lifecycle
//
// An open store holds the lock of its folder: another process, or another Open in this one, gets
// [agentjob.ErrLeaseHeld] after a second. A killed process leaves no lock. One store
// holds any number of providers, each under its own lease. Close the store after the workers have
// returned. A folder that is moved away while the store is open makes writes fail until it is back; one that is
// replaced by another ends the leases. In a test that uses testing/synctest, open and close the store inside the bubble.
//
// # Durability
//
// A file is written beside its place, synced, renamed, and the folder is synced, before Put and BindProvider
// return. So a crash leaves the old record or the new one; temporary files that it leaves are removed by Acquire. A Delete is
// durable with the next Put of the provider, or at Close. A full disk fails a Put and keeps the old record; deletes work.
//
// # Errors
//
// [agentjob.ErrLeaseHeld] when another has the folder or the provider, [agentjob.ErrLeaseLost] after Close,
// and these at the start, when what is there can't be used:
//
//   - A damaged record, format or binding is moved to the folder "damaged", and reported as a [*DamagedError] which says
//     what to do. At each later start the provider is refused again, until an operator has decided: [GoOn],
//     or moving that folder away. Other providers in the store are served.
//   - What a newer version wrote stays as it is: [agentjob.ErrStoreNewer].
//   - If the key that sealed a record is missing the record stays, and no new key is made: [secret.ErrKeyUnknown].
//
// # Security
//
// A folder that is not there is made private (0700); one that others may enter is refused. Files are 0600. What holds chat text is
// sealed with the keys of [Options]; without it, ids, states and times are readable. A record cannot be
// altered or swapped unnoticed while it has content. Deleting a file doesn't wipe the disk's blocks.
//
// # Compatibility
//
// The format is version 1. Network file systems are not supported: their locks and syncs can't be relied on.
// On Windows a folder can't be synced, so a power cut may take back the latest writes there.
package filestore
