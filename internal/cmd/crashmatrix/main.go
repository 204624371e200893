package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"
)

func main() {
	if text, ok := os.LookupEnv(ordersVariable); ok {
		os.Exit(provide(text, os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], rows(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitKept   = 0
	exitBroken = 1 // a promise was broken, or the table is not complete
	exitUsage  = 2
)

const usage = `usage: go run ./internal/cmd/crashmatrix [-runs N] [-only REGEXP] [-store bolt|file] [-parallel N]

Kills, stops and confuses the real worker, a process of its own, at every named moment of a task's
life, starts it again, and counts what became of the tasks. A row per moment:

  runs         how often (rows of faults, workers, pauses and clocks are run a fifth of -runs)
  delivered    the customer has the reply
  interrupted  the crash came before the reply was saved; reported, not sent, not run again
  unrecorded   the crash came between the poll's answer and the record of the claim: never run, and
               the platform lets it expire
  late         the platform had let it expire; reported
  lost         a saved reply was not delivered, though neither refused nor expired
  duplicated   the customer has two messages, or paid twice
  regenerated  the handler ran twice for one task

The last line is lost=0 duplicated=0 regenerated=0.
Exit code: 0 all promises kept, 1 one was broken or the table is not complete, 2 wrong usage.

`

// run is the command. The table goes to stdout, everything else to stderr.
func run(ctx context.Context, args []string, rows []row, stdout, stderr io.Writer) (code int) {
	flags := flag.NewFlagSet("crashmatrix", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = io.WriteString(stderr, usage)
		flags.PrintDefaults()
	}
	m := matrix{}
	flags.IntVar(&m.runs, "runs", 50, "runs of a row")
	flags.IntVar(&m.parallel, "parallel", 4, "runs at once")
	flags.StringVar(&m.store, "store", "bolt", "the provider's `kind` of store: "+storeNames())
	dir := flags.String("dir", "", "an existing `folder` for the providers' states; default: on the memory disk if there is one, which is faster and\nshows the same, since SIGKILL does not lose what the system holds in memory")
	only := flags.String("only", "", "run the rows whose names match this `regexp`")
	list := flags.Bool("list", false, "print the rows' names and run nothing")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitKept
		}
		return exitUsage
	}
	misused := func(format string, args ...any) int {
		_, _ = fmt.Fprintf(stderr, "crashmatrix: "+format+"\n", args...)
		return exitUsage
	}
	wanted, err := regexp.Compile(*only)
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return err == nil && !wanted.MatchString(r.name) })
	switch {
	case err != nil:
		return misused("-only: %v", err)
	case flags.NArg() > 0:
		return misused("what is %q? see -h", flags.Arg(0))
	case m.runs < 1 || m.parallel < 1:
		return misused("-runs and -parallel take 1 or more")
	case stores[m.store] == nil:
		return misused("-store takes %s, not %q", storeNames(), m.store)
	case len(rows) == 0:
		return misused("no row matches -only %q; -list shows them all", *only)
	case *list:
		for _, r := range rows {
			_, _ = fmt.Fprintln(stdout, r.name)
		}
		return exitKept
	}
	if !canSuspend {
		_, _ = fmt.Fprintln(stderr, "crashmatrix: rows that suspend a process are left out: this system can't")
	}
	failed := func(err error) int {
		_, _ = fmt.Fprintf(stderr, "crashmatrix: the table is not complete: %v\n", err)
		return exitBroken
	}
	if m.dir, err = tempDir(*dir); err != nil {
		return failed(err)
	}
	defer func() {
		if err := os.RemoveAll(m.dir); err != nil {
			code = failed(fmt.Errorf("remove the states: %w", err))
		}
	}()
	began := time.Now()
	all, err := m.run(ctx, rows, stdout, stderr)
	if err != nil {
		return failed(err)
	}
	_, _ = fmt.Fprintf(stderr, "%d rows on the %s store in %v\n", len(all), m.store, time.Since(began).Round(time.Second))
	if !conclude(all, stdout) {
		return exitBroken
	}
	return exitKept
}

// tempDir makes a folder in dir, or in the best place.
func tempDir(dir string) (string, error) {
	const pattern = "crashmatrix-*"
	if dir == "" {
		if made, err := os.MkdirTemp("/dev/shm", pattern); err == nil {
			return made, nil
		}
	}
	return os.MkdirTemp(dir, pattern)
}
