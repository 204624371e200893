package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	if childMain() {
		return
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("powercut", flag.ContinueOnError)
	flags.SetOutput(stderr)
	store := flags.String("store", "", "only this store: bolt, file")
	var o options
	flags.IntVar(&o.tasks, "tasks", 24, "tasks that the recorded provider serves")
	flags.IntVar(&o.states, "states", 3000, "states of the disk to judge for each store, about; 0 is all")
	flags.Uint64Var(&o.seed, "seed", 1, "chooses the states")
	flags.Func("inject", "a fault as strace's option inject takes it, may be repeated: fdatasync:retval=0 fakes syncs", func(fault string) error {
		o.faults = append(o.faults, fault)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if o.tasks < 1 {
		fmt.Fprintln(stderr, "powercut: -tasks must be at least 1 task")
		return 2
	}
	var rows []row
	for _, k := range kinds {
		if *store != "" && k.name != *store {
			continue
		}
		got, err := check(ctx, k, o)
		if err != nil {
			fmt.Fprintln(stderr, "powercut:", err)
			return 2
		}
		rows = append(rows, got...)
	}
	if len(rows) == 0 {
		fmt.Fprintf(stderr, "powercut: there is no store %q\n", *store)
		return 2
	}
	total, err := report(rows, stdout, stderr)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "powercut:", err)
		return 2
	case total.bad() > 0:
		return 1
	}
	return 0
}

// maxTexts bounds the findings that are printed.
const maxTexts = 20

func report(rows []row, stdout, stderr io.Writer) (total tally, err error) {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "store\tvariant\tstates\tlost\trerun\tearly\tunopenable\t\n")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t\n", r.store, r.name, r.states, r.lost, r.rerun, r.early, r.unopenable)
		if r.name == "order" || r.name == "restart" {
			r.states = 0 // not further states
		}
		total.add(r.tally)
	}
	err = table.Flush()
	for i, text := range total.texts {
		if i == maxTexts {
			fmt.Fprintf(stderr, "and %d more\n", len(total.texts)-i)
			break
		}
		fmt.Fprintln(stderr, text)
	}
	_, last := fmt.Fprintf(stdout, "states=%d lost=%d rerun=%d early=%d unopenable=%d\n", total.states, total.lost, total.rerun, total.early, total.unopenable)
	return total, errors.Join(err, last)
}
