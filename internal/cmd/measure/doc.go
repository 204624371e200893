// Measure prints a row for every figure that the worker is held to: its name, value and unit,
// what it is compared with, the ratio, the goal, and ok or short.
//
//	go run ./internal/cmd/measure                         # all, ten to fifteen minutes
//	go run ./internal/cmd/measure -only 'tasks|latency'   # rows by name
//	go run ./internal/cmd/measure -rounds 2               # a quick look, marked as one
//	go run ./internal/cmd/measure -json                   # an array of rows, each with its machine
//
// It exits with 1 if a row is short, with 2 if one could not be measured. -dir FOLDER chooses the
// disk; a folder in memory makes syncing free and the figures of the store meaningless, so the
// last line names the file system.
//
// # How to read a row
//
// Everything is measured in interleaved rounds: ours, what it is compared with, ours, and so on.
// Each round yields a ratio; the row shows the median of seven and, as spread, the lowest and the
// highest. A disk or a machine that others use swings by far more than the goals leave room for, so
// believe ratios and not values, and look at the spread before either. A row that the system can't
// tell (private memory and processor time, off Linux) says n/a and is neither ok nor short.
//
// The platform is a process of its own that answers from memory with as little work as it can.
// agentjobtest would be a truer one; its work would be in both sides of every comparison and hide
// a part of the difference. It takes each reply once: a second one, or one to a task that it did
// not hand out, fails the figure. The bare loops send the same requests, header for header, with
// net/http and encoding/json and without retries, deadlines or a second look at an answer (bare.go).
// Both sides have the same transport and the same folder.
//
// # The figures
//
// tasks/N, latency-p50/N, latency-p99/N: 1,000 tasks that wait, a handler that returns at once, at
// concurrency N, beside N goroutines that poll, record the claim, look at the progress, record the
// reply, post it and record the end, one after the other, in a store of the same kind. The platform
// takes the times, from handing a task out to its accepted reply. A latency's ratio is the bare
// loop's beside ours, so that more is better in every row.
//
// parallel/5: tasks a second with a handler of 20 ms, concurrency 5 beside 1.
//
// start/first, start/again: from the call of Run to the heartbeat's arrival, with a new store, for which the
// profile is asked and noted first, and with a known one.
//
// store/1-writer, store/64-writers: a durable record of 1 KiB and its late removal, beside one append
// and fsync of 1 KiB to a plain file. The 64 are providers of their own in one file.
//
// drain/10000: from the call of Run on a store with 10,000 saved replies to the last accepted one,
// beside a loop of as many goroutines as the worker has couriers that has them in memory and records
// nothing: what a worker must do besides, read its records and note each end, is part of the
// distance. drain/10000-recorded is beside a loop that does both.
//
// idle/memory, idle/goroutines, idle/cpu: 1,000 workers of one process, on one store and one HTTP/2
// transport, beside 1,000 goroutines that poll on the same kind of transport. Memory is private
// memory after garbage collection, less that of a process with no worker; for the ratio also less what
// 1,000 leases of the store take. Processor time is what a poll of two seconds costs, over eight
// seconds after the start; heartbeats, at most one a worker in that time, are in it.
//
// growth/...: what one costs at the largest of three sizes, beside the least that one costs at the smaller
// two: 100, 300 and 1,000 idle workers (memory, and processor time a poll); 1,000, 3,000 and 10,000
// saved replies; conversations of 100, 1,000 and 10,000 messages, whose fixed cost a task weighs most at the
// smallest. The goal is linear or better; a quarter is left for noise.
package main
