package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain lets the test binary be a child.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(exitError)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// fixed is a figure that needs no machine: two sides with the numbers of each round, and a row.
func fixed(name string, least float64, ours, theirs []float64) figure {
	return figure{
		name:   name,
		claims: []claim{{name: name, unit: "things/s", compared: "theirs", goal: goal{limit: least}, value: of("ours", "x"), ratio: beside(of("ours", "x"), of("theirs", "x"))}},
		sides:  []string{"ours", "theirs"},
		set: func(context.Context, *bench) (map[string]measure, func() error, error) {
			return map[string]measure{"ours": playing(ours), "theirs": playing(theirs)}, func() error { return nil }, nil
		},
	}
}

func playing(numbers []float64) measure {
	return func(context.Context) (sample, error) {
		x := numbers[0]
		numbers = append(numbers[1:], x)
		return sample{"x": x}, nil
	}
}

func command(t *testing.T, figures []figure, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	code = run(t.Context(), append([]string{"-dir", t.TempDir()}, args...), figures, &out, &log)
	return code, out.String(), log.String()
}

func TestExitCodeTellsARowThatIsShort(t *testing.T) {
	good := fixed("good", 0.8, []float64{9}, []float64{10})
	bad := fixed("bad", 0.8, []float64{7}, []float64{10})

	code, out, _ := command(t, []figure{good, bad})
	assert.Equal(t, exitShort, code)
	assert.Regexp(t, `(?m)^good +9 +things/s +theirs +0.9 +>= 0.8 times +ok `, out)
	assert.Regexp(t, `(?m)^bad +7 +things/s +theirs +0.7 +>= 0.8 times +short `, out)

	code, out, _ = command(t, []figure{good, bad}, "-only", "^g")
	assert.Equal(t, exitOK, code)
	assert.NotContains(t, out, "bad")
}

func TestAFigureThatFailsIsNoRow(t *testing.T) {
	broken := fixed("broken", 0.8, []float64{1}, []float64{1})
	broken.set = func(context.Context, *bench) (map[string]measure, func() error, error) {
		return nil, nil, errors.New("no disk")
	}
	code, out, log := command(t, []figure{fixed("good", 0.8, []float64{9}, []float64{10}), broken})
	assert.Equal(t, exitError, code)
	assert.Contains(t, out, "good", "what was measured before is shown")
	assert.NotContains(t, out, "broken")
	assert.Contains(t, log, "broken: no disk")
}

func TestWrongArguments(t *testing.T) {
	figures := []figure{fixed("good", 0.8, []float64{9}, []float64{10})}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-only", "["}, "missing closing ]"},
		{[]string{"-only", "none"}, `no row matches -only "none"`},
		{[]string{"-rounds", "0"}, "-rounds is 0, must be 1 or more"},
		{[]string{"-dir", "/does/not/exist"}, "no such file"},
		{[]string{"more"}, `unexpected argument "more"`},
		{[]string{"-fast"}, "not defined: -fast"},
	} {
		code, _, log := command(t, figures, c.args...)
		assert.Equal(t, exitError, code, c.args)
		assert.Contains(t, log, c.want, c.args)
	}
}

func TestJSONHasTheRowAndTheMachine(t *testing.T) {
	_, out, _ := command(t, []figure{fixed("good", 0.8, []float64{9}, []float64{10})}, "-json")
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	require.Len(t, rows, 1)
	assert.InDelta(t, 9, rows[0]["value"], 0)
	assert.InDelta(t, 0.9, rows[0]["ratio"], 1e-9)
	assert.Equal(t, "good things/s theirs >= 0.8 times ok", rows[0]["name"].(string)+" "+rows[0]["unit"].(string)+" "+
		rows[0]["comparedWith"].(string)+" "+rows[0]["goal"].(string)+" "+rows[0]["verdict"].(string))
	machine := rows[0]["machine"].(map[string]any)
	for _, fact := range []string{"go", "os", "arch", "cores", "disk", "date"} {
		assert.NotEmpty(t, machine[fact], fact)
	}
}

// The names are what -only, the README and scripts know.
func TestEveryRowIsThere(t *testing.T) {
	var names []string
	for _, f := range figures {
		for _, c := range f.claims {
			names = append(names, c.name)
		}
	}
	assert.Equal(t, []string{
		"tasks/1", "latency-p50/1", "latency-p99/1", "tasks/5", "latency-p50/5", "latency-p99/5",
		"parallel/5", "start/first", "start/again", "store/1-writer", "store/64-writers",
		"drain/10000", "drain/10000-recorded", "growth/saved", "growth/conversation",
		"idle/memory", "idle/goroutines", "idle/cpu", "growth/idle-memory", "growth/idle-cpu",
	}, names)
}

func TestOneFigureForReal(t *testing.T) {
	code, out, log := command(t, figures, "-only", "^start/first$", "-rounds", "1", "-json")
	require.NotEqual(t, exitError, code, log)
	var rows []row
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	require.Len(t, rows, 1)
	assert.Equal(t, "start/first", rows[0].Name)
	assert.Positive(t, *rows[0].Value)
	assert.Nil(t, rows[0].Ratio, "it is the value that has a goal")
	assert.Contains(t, rows[0].Note, "quick look")
}
