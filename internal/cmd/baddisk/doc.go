// Package baddisk has no code: its tests put every local store on bad disks, under the whole real worker against
// the platform of agentjobtest.
//
//	go test ./internal/cmd/baddisk        everything
//	go test -v -run 'Disk/filestore' ./internal/cmd/baddisk
//
// # What is shown
//
//   - A full disk (Linux): a tmpfs of a megabyte that is filled before a claim, between the claim and the saved reply, between that and
//     the end, and before a restart. From the first write that fails nothing more is claimed and no heartbeat
//     is sent, saved replies are delivered all the same, a finished reply waits and is saved when there is space
//     again, which is noticed within seconds. The store's own conformance suite runs there, too.
//   - A disk that can only be read, and syncs that fail (Linux; by strace).
//   - A folder that is moved away or replaced under the worker.
//   - Damaged, cut, and newer files: nothing is claimed, at every start again, until somebody has decided.
//
// In all of them every message is answered once, no handler runs twice for it, and no reply that was
// saved is lost, except those in files that were damaged.
//
// # What is needed
//
// The tests of disks run again in a user namespace and a mount namespace of their own, so that they need
// no root and leave nothing mounted. Where the kernel forbids that they are skipped and say how to allow it.
//
// # What it can't show
//
// A tmpfs has no blocks to lose: what survives a power cut is powercut's business.
package baddisk
