package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role); err != nil {
			fmt.Fprintln(os.Stderr, "measure:", role+":", err)
			os.Exit(exitError)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], figures, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitOK    = 0
	exitShort = 1 // a row is short of its goal
	exitError = 2 // a figure could not be measured, or a flag is wrong
)

// figures are all of them, in the order in which they are measured.
var figures = []figure{throughput(1), throughput(5), parallel, start, store, saved, conversations, idle}

// run is the command. Rows go to stdout, everything else to stderr.
func run(ctx context.Context, args []string, figures []figure, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "measure the rows whose names match this `regexp`")
	asJSON := flags.Bool("json", false, "print an array of rows as JSON")
	rounds := flags.Int("rounds", enoughRounds, "interleaved rounds of a figure; fewer than 7 are a quick look")
	dir := flags.String("dir", "", "an existing `folder` on the disk to measure; default: the system's for temporary files")
	if err := flags.Parse(args); err != nil {
		if err == flag.ErrHelp {
			return exitOK
		}
		return exitError
	}
	complain := func(err error) int {
		fmt.Fprintln(stderr, "measure:", err)
		return exitError
	}
	wanted, err := regexp.Compile(*only)
	switch {
	case err != nil:
		return complain(fmt.Errorf("-only: %w", err))
	case *rounds < 1:
		return complain(fmt.Errorf("-rounds is %d, must be 1 or more", *rounds))
	case flags.NArg() > 0:
		return complain(fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	parent, err := os.MkdirTemp(*dir, "agentjob-measure-")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(parent)

	b := &bench{dir: parent, rounds: *rounds, log: stderr}
	rows, failed := b.measure(ctx, figures, wanted)
	machine := thisMachine(parent)
	print := printTable
	if *asJSON {
		print = printJSON
	}
	if err := print(stdout, rows, machine); err != nil {
		failed = cmp.Or(failed, err)
	}
	switch {
	case failed != nil:
		return complain(failed)
	case len(rows) == 0:
		return complain(fmt.Errorf("no row matches -only %q", *only))
	case slices.ContainsFunc(rows, func(r row) bool { return r.Verdict == short }):
		return exitShort
	}
	return exitOK
}
