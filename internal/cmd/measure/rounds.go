package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"time"
)

const (
	// enoughRounds is how many a figure takes to be believed.
	enoughRounds = 7
	// sideTimeout bounds one side of a round. The slowest takes seconds.
	sideTimeout = 3 * time.Minute
)

// A bench is where figures are measured.
type bench struct {
	dir    string // on the disk that is measured
	rounds int
	log    io.Writer
}

// A figure is one measurement and the rows that come of it.
type figure struct {
	name   string
	claims []claim
	sides  []string // what a round measures, in this order
	// set up what all rounds share, and return the sides' measurements.
	set func(context.Context, *bench) (sides map[string]measure, done func() error, err error)
}

// A measure is one side of a round.
type measure func(context.Context) (sample, error)

// A sample is what a side measured, by what. What could not be measured is absent.
type sample map[string]float64

// A round is one sample of each side.
type round map[string]sample

// measure runs the figures of which a row is wanted, and returns the wanted rows.
func (b *bench) measure(ctx context.Context, figures []figure, wanted *regexp.Regexp) ([]row, error) {
	rows := []row{}
	for _, f := range figures {
		claims := slices.DeleteFunc(slices.Clone(f.claims), func(c claim) bool { return !wanted.MatchString(c.name) })
		if len(claims) == 0 {
			continue
		}
		rounds, err := b.interleave(ctx, f)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", f.name, err)
		}
		for _, c := range claims {
			rows = append(rows, c.judge(rounds))
		}
	}
	return rows, nil
}

// interleave measures the sides of a figure in turn, round after round, so that what
// disturbs the machine for a while disturbs all of them.
func (b *bench) interleave(ctx context.Context, f figure) (rounds []round, err error) {
	sides, done, err := f.set(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := done(); err == nil {
			err = e
		}
	}()
	for n := range b.rounds {
		fmt.Fprintf(b.log, "measure: %s, round %d of %d\n", f.name, n+1, b.rounds)
		r := round{}
		for _, name := range f.sides {
			bounded, cancel := context.WithTimeout(ctx, sideTimeout)
			s, err := sides[name](bounded)
			cancel()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			r[name] = s
		}
		rounds = append(rounds, r)
	}
	return rounds, nil
}

// folder makes an empty folder that lives as long as the bench.
func (b *bench) folder() (string, error) { return os.MkdirTemp(b.dir, "") }

// A spread is what the rounds say of one number.
type spread struct{ low, median, high float64 }

// over gathers a number from all rounds. false: one of them did not measure it.
func over(rounds []round, n number) (spread, bool) {
	var all []float64
	for _, r := range rounds {
		x, measured := n(r)
		if !measured {
			return spread{}, false
		}
		all = append(all, x)
	}
	slices.Sort(all)
	return spread{all[0], median(all), all[len(all)-1]}, true
}

// median returns the middle of sorted numbers, or the mean of the two around it.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// A number is read from a round. false: it was not measured.
type number func(round) (float64, bool)

// of is what a side measured.
func of(side, what string) number {
	return func(r round) (float64, bool) {
		x, measured := r[side][what]
		return x, measured
	}
}

// beside is the quotient of two numbers of the same round.
func beside(x, y number) number {
	return func(r round) (float64, bool) {
		a, first := x(r)
		b, second := y(r)
		return a / b, first && second
	}
}

// minus is the difference of two numbers of the same round.
func minus(x, y number) number {
	return func(r round) (float64, bool) {
		a, first := x(r)
		b, second := y(r)
		return a - b, first && second
	}
}

// per shares a number out.
func per(x number, n int) number {
	return func(r round) (float64, bool) {
		a, measured := x(r)
		return a / float64(n), measured
	}
}

// least is the smallest of several numbers of the same round.
func least(numbers ...number) number {
	return func(r round) (smallest float64, measured bool) {
		for i, n := range numbers {
			x, has := n(r)
			if !has {
				return 0, false
			}
			if i == 0 || x < smallest {
				smallest = x
			}
		}
		return smallest, true
	}
}
