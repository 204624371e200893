package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// A verdict says whether a row reaches its goal.
type verdict string

const (
	ok          verdict = "ok"
	short       verdict = "short"
	unsupported verdict = "n/a" // can't be measured on this system
)

// A row is one figure.
type row struct {
	Name     string   `json:"name"`
	Value    *float64 `json:"value"` // median over the rounds; absent: not measured
	Unit     string   `json:"unit"`
	Compared string   `json:"comparedWith"`
	Ratio    *float64 `json:"ratio"` // median of the rounds' ratios; absent: it is the value that has a goal
	Goal     string   `json:"goal"`
	Verdict  verdict  `json:"verdict"`
	Note     string   `json:"note"` // how far the rounds lay apart
}

// A goal bounds a row's ratio or, if it has a unit, its value.
type goal struct {
	limit float64
	most  bool // reached by what is not more; otherwise by what is not less
	unit  string
}

func (g goal) reached(by float64) bool {
	if g.most {
		return by <= g.limit
	}
	return by >= g.limit
}

func (g goal) String() string {
	sign, unit := ">=", " times"
	if g.most {
		sign = "<="
	}
	if g.unit != "" {
		unit = " " + g.unit
	}
	return fmt.Sprintf("%s %s%s", sign, digits(g.limit), unit)
}

// A claim is a row before it is measured.
type claim struct {
	name, unit, compared string
	goal                 goal
	value                number
	ratio                number // nil: the goal is one of the value
}

// judge makes the row of a claim from what the rounds measured.
func (c claim) judge(rounds []round) row {
	r := row{Name: c.name, Unit: c.unit, Compared: c.compared, Goal: c.goal.String()}
	value, measured := over(rounds, c.value)
	if !measured {
		r.Verdict, r.Note = unsupported, "this system does not tell it"
		return r
	}
	r.Value = &value.median
	judged, what := value, c.unit
	if c.ratio != nil {
		ratio, measured := over(rounds, c.ratio)
		if !measured {
			r.Verdict, r.Note = unsupported, "this system does not tell what it is compared with"
			return r
		}
		r.Ratio = &ratio.median
		judged, what = ratio, "times"
	}
	r.Verdict = short
	if c.goal.reached(judged.median) {
		r.Verdict = ok
	}
	r.Note = fmt.Sprintf("%s to %s %s in %d rounds", digits(judged.low), digits(judged.high), what, len(rounds))
	if len(rounds) < enoughRounds {
		r.Note += fmt.Sprintf(": a quick look, a figure takes %d", enoughRounds)
	}
	return r
}

// digits writes a number with three digits that count.
func digits(x float64) string {
	if math.Abs(x) >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

func optional(x *float64) string {
	if x == nil {
		return "-"
	}
	return digits(*x)
}

func printTable(out io.Writer, rows []row, m machine) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "name\tvalue\tunit\tcompared with\tratio\tgoal\t\tspread")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Name, optional(r.Value), r.Unit, r.Compared, optional(r.Ratio), r.Goal, r.Verdict, r.Note)
	}
	if err := table.Flush(); err != nil { // holds the first error of a write
		return err
	}
	_, err := fmt.Fprintln(out, m)
	return err
}

func printJSON(out io.Writer, rows []row, m machine) error {
	type measured struct {
		row
		Machine machine `json:"machine"`
	}
	all := []measured{}
	for _, r := range rows {
		all = append(all, measured{r, m})
	}
	lines := json.NewEncoder(out)
	lines.SetIndent("", "  ")
	lines.SetEscapeHTML(false)
	return lines.Encode(all)
}
