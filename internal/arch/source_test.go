package arch

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSourceRules(t *testing.T) {
	files, parsed := parse(t, os.DirFS(repository))
	require.Contains(t, files, "internal/arch/source_test.go", "not at the repository's root")
	for name, found := range map[string][]string{
		"process-wide effects in library code":          processWide(parsed),
		"sleeps in tests":                               realSleeps(parsed),
		"package names that say nothing":                emptyNames(parsed),
		"paths of one machine":                          machinePaths(files),
		"public packages without their doc.go":          undocumented(parsed),
		"doc.go without a heading that its area owes":   missingHeadings(parsed),
		"modules that go.work misses":                   strayModules(files, workspaceFolders(t)),
		"heavy modules in the root's go.mod and go.sum": heavyModules(files),
	} {
		assert.Empty(t, strings.Join(found, "\n"), name)
	}
}

// processWide finds what only a program may do: end the process, take its signals, write to the logger that all share.
func processWide(parsed []goFile) []string {
	banned := map[string]*regexp.Regexp{
		"os":        regexp.MustCompile(`^Exit$`),
		"os/signal": regexp.MustCompile(``),
		"log":       regexp.MustCompile(`^(Fatal|Panic|Print|Set|Default|Output|Writer)`),
		"log/slog":  regexp.MustCompile(`^(SetDefault|SetLogLoggerLevel|Default|Debug|Info|Warn|Error|Log)(Context|Attrs)?$`),
	}
	var found []string
	for _, f := range parsed {
		if f.isProgram() || f.isTest() {
			continue
		}
		for imported, names := range banned {
			for _, use := range f.uses(imported) {
				if names.MatchString(use.Sel.Name) {
					found = append(found, f.at(use, "%s.%s belongs to programs, in examples or cmd", imported, use.Sel.Name))
				}
			}
		}
	}
	return found
}

// realSleeps finds time.Sleep in tests. It is virtual in a function that calls testing/synctest, whose
// Test makes a bubble and whose Wait panics outside it, or that calls a function of its package which does so.
func realSleeps(parsed []goFile) []string {
	bubbles := map[string]bool{} // folder and name of the functions that call synctest
	for _, f := range parsed {
		for _, use := range f.uses("testing/synctest") {
			if decl, ok := f.declaration(use).(*ast.FuncDecl); ok {
				bubbles[path.Join(f.dir(), decl.Name.Name)] = true
			}
		}
	}
	isVirtual := func(f goFile, decl ast.Decl) (virtual bool) {
		ast.Inspect(decl, func(n ast.Node) bool { // its own name is among the identifiers
			name, ok := n.(*ast.Ident)
			virtual = virtual || ok && bubbles[path.Join(f.dir(), name.Name)]
			return true
		})
		return virtual
	}
	var found []string
	for _, f := range parsed {
		for _, use := range f.uses("time") {
			if f.isTest() && use.Sel.Name == "Sleep" && !isVirtual(f, f.declaration(use)) {
				found = append(found, f.at(use, "time.Sleep outside testing/synctest: wait for a channel or require.Eventually instead"))
			}
		}
	}
	return found
}

// uses are the selections from an imported package: os.Exit for "os".
func (f goFile) uses(imported string) []*ast.SelectorExpr {
	local := ""
	for _, spec := range f.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && p == imported {
			if local = path.Base(p); spec.Name != nil {
				local = spec.Name.Name
			}
		}
	}
	var found []*ast.SelectorExpr
	ast.Inspect(f.File, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := selector.X.(*ast.Ident); ok && of.Name == local {
				found = append(found, selector)
			}
		}
		return true
	})
	return found
}

// declaration is the top-level declaration around a node.
func (f goFile) declaration(n ast.Node) ast.Decl {
	i := slices.IndexFunc(f.Decls, func(d ast.Decl) bool { return d.Pos() <= n.Pos() && n.Pos() < d.End() })
	return f.Decls[i]
}

func emptyNames(parsed []goFile) []string {
	empty := []string{"util", "utils", "common", "types", "helper", "helpers", "misc"}
	var found []string
	for _, f := range parsed {
		name := strings.TrimSuffix(f.Name.Name, "_test")
		if slices.Contains(empty, name) || slices.Contains(empty, path.Base(f.dir())) {
			found = append(found, f.at(f.Name, "name the package by what it is for"))
		}
	}
	return found
}

var machinePath = regexp.MustCompile(`(^|[^\w./])/(` + `root|home|work)/`)

func machinePaths(files tree) []string {
	var found []string
	for _, p := range files.paths() {
		for i, line := range strings.Split(files[p], "\n") {
			if machinePath.MatchString(line) {
				found = append(found, fmt.Sprintf("%s:%d: %s", p, i+1, machinePath.FindString(line)))
			}
		}
	}
	return found
}

func TestSourceRulesCanFail(t *testing.T) {
	_, parsed := fixture(t,
		"agentjob/a.go", "package agentjob\n\nimport (\n\t\"log\"\n\t\"log/slog\"\n\tsystem \"os\"\n\t\"os/signal\"\n)\n\n"+
			"var f = func() {\n\tsystem.Exit(1)\n\tlog.Fatal()\n\tsignal.Notify(nil)\n\tslog.Info(``)\n\tslog.New(nil)\n\tlog.New(nil)\n\tsystem.Getpid()\n}\n",
		"agentjob/a_test.go", "package agentjob\nimport \"os\"\nfunc TestMain() { os.Exit(0) }",
		"examples/x/main.go", "package main\nimport \"os\"\nfunc main() { os.Exit(0) }",
		"internal/cmd/y/main.go", "package main\nimport \"os\"\nfunc main() { os.Exit(0) }",
		"agentjob/other.go", "package agentjob\nvar os struct{ Exit func(int) }\nfunc g() { os.Exit(0) }",
	)
	assert.ElementsMatch(t, []string{
		"agentjob/a.go:11: os.Exit belongs to programs, in examples or cmd",
		"agentjob/a.go:12: log.Fatal belongs to programs, in examples or cmd",
		"agentjob/a.go:13: os/signal.Notify belongs to programs, in examples or cmd",
		"agentjob/a.go:14: log/slog.Info belongs to programs, in examples or cmd",
	}, processWide(parsed))

	_, parsed = fixture(t, "p/p_test.go", `package p
import ("time"; "testing/synctest")
func TestReal(t *T) { time.Sleep(1) }
func TestVirtual(t *T) { synctest.Test(t, func(t *T) { time.Sleep(1) }) }
func advance() { time.Sleep(1); synctest.Wait() }
func inBubble(t *T, f func()) { synctest.Test(t, f) }
var at = time.Second
`, "p/q_test.go", "package p_test\nimport \"time\"\nfunc TestWrapped(t *T) { inBubble(t, func() { time.Sleep(1) }) }",
		"q/q_test.go", "package q\nimport \"time\"\nfunc TestOther(t *T) { inBubble(t, func() { time.Sleep(1) }) }",
		"p/p.go", "package p\nimport \"time\"\nfunc f() { time.Sleep(1) }")
	const instead = ": time.Sleep outside testing/synctest: wait for a channel or require.Eventually instead"
	assert.Equal(t, []string{"p/p_test.go:3" + instead, "q/q_test.go:3" + instead}, realSleeps(parsed))

	_, parsed = fixture(t, "internal/util/a.go", "package fine", "internal/x/a.go", "package helpers", "internal/commons/a.go", "package commons", "internal/testdata/util/a.go", "package util")
	assert.Equal(t, []string{"internal/util/a.go:1: name the package by what it is for", "internal/x/a.go:1: name the package by what it is for"}, emptyNames(parsed))

	home := "/home" + "/"
	files, _ := fixture(t, "a.md", "one\nsee "+home+"me\n", "b.txt", home+"me", "c.md", "https://example.com"+home+" and ."+home,
		".ci/run", "cd '/work"+"/x'", ".git/config", home, "state/log", home, "p.env", home, "testdata/a.go", "not Go: \"/root"+"/\"")
	assert.Equal(t, []string{".ci/run:1: '/work" + "/", "a.md:2:  " + home, "b.txt:1: " + home, "testdata/a.go:1: \"/root" + "/"}, machinePaths(files))
}

func TestAWorktreeIsReadWhole(t *testing.T) {
	files, _ := fixture(t, ".git", "gitdir: elsewhere", "a.md", "text")
	assert.Equal(t, []string{"a.md"}, files.paths())
}
