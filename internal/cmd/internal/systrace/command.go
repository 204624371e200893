package systrace

import (
	"maps"
	"slices"
	"strings"
)

// Command returns the command line that runs a program and records, in a file, the
// calls that a replay needs. Each of faults is an argument of strace's option inject, such as
// "fdatasync:error=EIO:when=3". Needs strace 5.3 or later.
func Command(output string, faults []string, program ...string) []string {
	calls := slices.Sorted(maps.Keys(ends))
	calls = append(calls, slices.Sorted(maps.Keys(beginnings))...)
	calls = append(calls, slices.Sorted(maps.Keys(strangers))...)
	command := []string{
		"strace", "-f", "--seccomp-bpf", "-qq", "-xx", "-s", "2097152", "-e", "signal=none", "-o", output,
		"-e", "trace=?" + strings.Join(calls, ",?"), // "?": where the machine has it,
	}
	for _, fault := range faults {
		command = append(command, "-e", "inject="+fault)
	}
	return append(append(command, "--"), program...)
}
