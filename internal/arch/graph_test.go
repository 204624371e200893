package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

const (
	rootModule = "github.com/agentjob/agentjob-go"
	repository = "../.." // from this package's folder, where its tests run
)

// node is one package as go list describes it.
type node struct {
	ImportPath string
	Imports    []string
	Standard   bool
	Module     *struct{ Path string }
}

// graph holds the workspace's packages and all they import, tests left out.
type graph map[string]node

func loadGraph() (graph, error) {
	out, err := goTool("list", "-deps", "-json=ImportPath,Imports,Standard,Module", "work")
	if err != nil {
		return nil, err
	}
	g := graph{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var n node
		switch err := decoder.Decode(&n); {
		case errors.Is(err, io.EOF):
			return g, nil
		case err != nil:
			return nil, err
		}
		g[n.ImportPath] = n
	}
}

// goTool runs the go command at the repository's root, in its workspace.
func goTool(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out, nil
}

// arrow says what packages must not reach, directly or through others.
//
// A pattern is a path, with /... for all below it too; "./" stands for this
// repository. "..." is every package, "std" the standard library, "root" the root module.
type arrow struct {
	from, not  []string // the packages spoken of, and those of them that are excepted
	never, but []string // what they must not reach, and what of it they may
	why        string
}

func (a arrow) patterns() []string { return slices.Concat(a.from, a.not, a.never, a.but) }

func (n node) is(pattern string) bool {
	switch pattern {
	case "...":
		return true
	case "std":
		return n.Standard
	case "root":
		return n.Module != nil && n.Module.Path == rootModule
	}
	if strings.HasPrefix(pattern, "./") {
		pattern = path.Join(rootModule, pattern)
	}
	below, deep := strings.CutSuffix(pattern, "/...")
	return n.ImportPath == below || deep && strings.HasPrefix(n.ImportPath, below+"/")
}

func (n node) isAny(patterns []string) bool { return slices.ContainsFunc(patterns, n.is) }

// broken returns a line for each package that breaks the arrow: the
// shortest chain of imports to what it must not reach, and the reason.
func (g graph) broken(a arrow) []string {
	var lines []string
	for _, n := range g {
		if !n.isAny(a.from) || n.isAny(a.not) {
			continue
		}
		chain := g.chain(n.ImportPath, func(m node) bool { return m.isAny(a.never) && !m.isAny(a.but) })
		if chain != nil {
			line := strings.Join(chain, " -> ") + "\n\tmust not be: " + a.why
			lines = append(lines, strings.ReplaceAll(line, rootModule+"/", ""))
		}
	}
	slices.Sort(lines)
	return lines
}

// chain is the shortest way from a package to another that is wrong, or nil.
func (g graph) chain(from string, wrong func(node) bool) []string {
	ways := [][]string{{from}}
	seen := map[string]bool{from: true}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, next := range g[way[len(way)-1]].Imports {
			n, known := g[next]
			if seen[next] || !known { // unknown: "C", and what the standard library vendors
				continue
			}
			seen[next] = true
			longer := append(slices.Clone(way), next)
			if wrong(n) {
				return longer
			}
			if !n.Standard {
				ways = append(ways, longer)
			}
		}
	}
	return nil
}

// stale compares the patterns of the arrows that lie in this repository with what exists: one
// that matches nothing must be in future, and one in future must match nothing.
func (g graph) stale(arrows []arrow, future []string) []string {
	var lines []string
	used := map[string]bool{}
	for _, a := range arrows {
		for _, pattern := range a.patterns() {
			if pattern == "root" || pattern == "std" || strings.HasPrefix(pattern, "./") {
				used[pattern] = true
			}
		}
	}
	for pattern := range used {
		if exists := g.matches(pattern); !exists && !slices.Contains(future, pattern) {
			lines = append(lines, pattern+" matches no package: mend the pattern, or add it to future until the package exists")
		} else if exists && slices.Contains(future, pattern) {
			lines = append(lines, pattern+" exists now: remove it from future")
		}
	}
	for _, pattern := range future {
		if !used[pattern] {
			lines = append(lines, pattern+" in future is in no arrow: remove it")
		}
	}
	slices.Sort(lines)
	return lines
}

func (g graph) matches(pattern string) bool {
	for _, n := range g {
		if n.is(pattern) {
			return true
		}
	}
	return false
}
