// Package systrace reads what strace recorded of a program, and replays the program's
// calls on a model of a disk that keeps only what was synced.
//
//	steps, err := systrace.Parse(file)
//	replay := systrace.NewReplay(folder)
//	for _, step := range steps {
//		err := replay.Apply(step)
//		image := replay.Disk().Image(nil) // what a power cut now would surely leave of folder
//	}
//
// Record with [Command], which knows the options that Parse relies on.
//
// # The model
//
// A write, a truncation or a change of names is pending from the moment it returned. An fsync or
// fdatasync of a file makes those of its writes durable that had returned when it
// began, once it has returned 0; an fsync of a folder does so for changes of names in it. Until then each
// may have reached the disk or not, independent of all others, and a write may be torn between two sectors:
// its file may be as long as if it were whole. [Disk.Pending] lists them and [Disk.Image] takes the [Fate] of each. A sync of a file that failed may have
// dropped what it was to write, so no later one makes that durable. (Names are in the file system's journal: if that
// can't be written, no later sync works either.) A sync that
// strace was told to fake did nothing. Renaming is atomic.
//
// This is harsher than the file systems in use, most of which keep the order of changes of names and
// persist a new file's name with its data. It is the least that POSIX promises, with sectors of 512 bytes that
// are written whole or not at all.
//
// # Limits
//
// One process with threads. A call that would change the folder in a way that the model does not
// know (a shared writable mapping, O_SYNC, vectored writes, symbolic links) is an error and never ignored.
package systrace
