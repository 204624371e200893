// Command powercut shows what would be on disk after a power cut, at every moment of a provider's life, and
// that the worker keeps its promises when it is started again from there.
//
//	go run ./internal/cmd/powercut [-store bolt|file] [-tasks N] [-states N] [-seed S] [-inject FAULT]...
//
// Killing a process proves little of durability, since the operating system still writes what it holds in memory. So
// this command records the real worker on the real store, serving tasks in two lives (so the store is made, opened
// again and closed, too), with strace,
// replays its writes on a model of a disk that keeps only what was synced (package systrace says how), and looks at
// what each power cut would leave. It needs Linux and strace (apt-get install strace).
//
// # The report
//
// A row for each way in which the disk may have taken what was not synced:
//
//	synced   none of it
//	all      all of it, as after a kill
//	subset   some of it, in any order
//	torn     some of it or all, and the last write of more than a sector (512 bytes) is torn between two
//	long     the same, and the file is as long as the whole write would have made it, with zeros
//
// and two more:
//
//	order    the trace alone: before each handler's start a sync had made the claimed record durable, and before the
//	         first byte of each reply the saved one. States are the starts and replies looked at
//	restart  states of all variants, one in twenty, in which the real worker was started, too
//
// Its columns:
//
//	states      power cuts looked at
//	lost        writes that the store had acknowledged and that are gone
//	rerun       tasks whose handler had started and would start, or be answered with other bytes, again
//	early       replies that had begun to leave, and handlers that had started, before their record was on disk
//	unopenable  stores that could not be opened, read and written
//
// In every state the store is opened, read, written to and opened again. That is cheap; starting
// the worker takes longer, so it is done for a sample, against the platform that the recorded worker had. There
// the platform hands out again the task that ran last before the cut, and a new one, which must
// run, or not running the other would prove nothing.
//
// The last line is for scripts: states=N lost=0 rerun=0 early=0 unopenable=0. Findings are on stderr. The exit code is 1 if
// there is one, 2 if nothing could be judged.
//
// # It can fail
//
// With -inject the recorded provider's system calls fail or are faked, as strace's option inject says:
//
//	-inject fsync:retval=0 -inject fdatasync:retval=0   syncs that do nothing: most states lose something
//	-inject fdatasync:error=EIO:when=9                  each thread's ninth fdatasync fails: what it was to write may be lost, what was acknowledged not
//
// # Limits
//
// States are a sample, by seed; -states 0 takes every power cut once in each variant. The subsets and tears in
// them are drawn: there are too many to try all. A disk that loses what it has confirmed, or
// destroys a sector that it was writing, is not modelled: no software can help with the first, and the
// bolt store refuses the second as damage.
package main
