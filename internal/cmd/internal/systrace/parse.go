package systrace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Step is the beginning or the end of a call, in the order in which strace saw them: what had returned
// before another call began is an earlier step.
type Step struct {
	Line int
	Call *Call
	End  bool
}

const unfinished = " <unfinished ...>"

// Parse reads a trace that was recorded with [Command].
func Parse(r io.Reader) ([]Step, error) {
	p := parser{open: map[int]*begun{}}
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			p.line++
			if err := p.parse(strings.TrimSuffix(line, "\n")); err != nil {
				return nil, fmt.Errorf("reading the trace, line %d: %w", p.line, err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return p.steps, nil
		case err != nil:
			return nil, fmt.Errorf("reading the trace: %w", err)
		}
	}
}

// A parser holds, of each thread, the call that began and has not returned.
type parser struct {
	line  int
	steps []Step
	open  map[int]*begun
}

type begun struct {
	call *Call
	text string
}

func (p *parser) parse(line string) error {
	number, text, _ := strings.Cut(line, " ")
	thread, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("it does not begin with a thread: %.60q", line)
	}
	text = strings.TrimLeft(text, " ")
	switch {
	case strings.HasPrefix(text, "+++"), strings.HasPrefix(text, "---"): // an exit, a signal
		return nil
	case strings.HasPrefix(text, "<... "):
		return p.resume(thread, text)
	}
	name, _, ok := strings.Cut(text, "(")
	if !ok {
		return fmt.Errorf("it is no call: %.60q", text)
	}
	call := &Call{Line: p.line, Thread: thread, Name: name}
	p.steps = append(p.steps, Step{p.line, call, false})
	if head, ok := strings.CutSuffix(text, unfinished); ok {
		p.open[thread] = &begun{call, head}
		_, args, _ := strings.Cut(head, "(")
		call.Args = splitArgs(args) // all that is known should it never return
		return nil
	}
	return p.finish(call, text)
}

func (p *parser) resume(thread int, text string) error {
	name, tail, ok := strings.Cut(strings.TrimPrefix(text, "<... "), " resumed>")
	b := p.open[thread]
	if !ok || b == nil || b.call.Name != name {
		return fmt.Errorf("it resumes a call that had not begun: %.60q", text)
	}
	delete(p.open, thread)
	return p.finish(b.call, b.text+tail)
}

// finish reads "name(args) = result".
func (p *parser) finish(call *Call, text string) error {
	end := strings.LastIndex(text, " = ")
	if end < len(call.Name) {
		return fmt.Errorf("%s has no result: %.60q", call.Name, text)
	}
	args, whole := strings.CutSuffix(strings.TrimRight(text[:end], " "), ")")
	result := strings.Fields(text[end+3:])
	if !whole || len(result) == 0 {
		return fmt.Errorf("%s has no result: %.60q", call.Name, text)
	}
	call.Args = splitArgs(args[len(call.Name)+1:])
	if result[0] == "?" { // the program ended in it
		return nil
	}
	ret, err := strconv.ParseInt(result[0], 0, 64)
	if err != nil {
		return fmt.Errorf("%s has the result %.40q", call.Name, result[0])
	}
	call.Ret, call.Returned = ret, true
	call.Injected = result[len(result)-1] == "(INJECTED)"
	if ret == -1 && len(result) > 1 {
		call.Errno = result[1]
	}
	p.steps = append(p.steps, Step{p.line, call, true})
	return nil
}
