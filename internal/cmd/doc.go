// Package cmd has no code. The folders below it are the commands that prove and measure
// what this repository promises, in a module of their own so that they may use every other:
//
//	crashmatrix  kills the real worker at every step of a task's life, and counts what became of the tasks
//	powercut     replays what the worker had really synced to disk at every moment, and starts it again from there
//	baddisk      (tests) full, damaged and newer stores under the whole worker
//	measure      prints a row for every figure: value, what it is compared with, goal, ok or short
//
// Their last lines are for people and for scripts, their exit codes for continuous integration.
package cmd
