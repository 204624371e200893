package arch

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// areas are the packages whose users live with a lifecycle and trust them with secrets or money.
var areas = []string{"agentjob", "harness", "connections", "protocol", "wallet"}

func isPublic(f goFile) bool {
	return !f.isTest() && !f.isProgram() && !under(f.path, "internal") && f.Name.Name != "main"
}

// undocumented finds public packages without a doc.go that has the package's comment.
func undocumented(parsed []goFile) []string {
	documented := map[string]bool{}
	var public []string
	for _, f := range parsed {
		if !isPublic(f) {
			continue
		}
		if path.Base(f.path) == "doc.go" && strings.HasPrefix(f.Doc.Text(), "Package "+f.Name.Name+" ") {
			documented[f.dir()] = true
		}
		public = append(public, f.dir())
	}
	public = slices.Compact(public)
	return slices.DeleteFunc(public, func(dir string) bool { return documented[dir] })
}

// missingHeadings finds what the doc.go of an area leaves out. undocumented finds those without one.
func missingHeadings(parsed []goFile) []string {
	var found []string
	for _, f := range parsed {
		if path.Base(f.path) != "doc.go" || !slices.Contains(areas, f.dir()) {
			continue
		}
		lines := strings.Split(f.Doc.Text(), "\n")
		for _, heading := range []string{"# Lifecycle", "# Errors", "# Security", "# Compatibility"} {
			if !slices.Contains(lines, heading) {
				found = append(found, f.path+" has no heading "+heading)
			}
		}
	}
	return found
}

func TestDocumentationRulesCanFail(t *testing.T) {
	_, parsed := fixture(t,
		"agentjob/doc.go", "// Package agentjob is short.\n//\n// # Lifecycle\n//\n// # Errors\n//\n// # Compatibility\npackage agentjob",
		"agentjob/none/a.go", "// Package none is not in doc.go.\npackage none",
		"agentjob/none/b.go", "package none",
		"agentjob/bare/doc.go", "package bare",
		"agentjob/onlytests/a_test.go", "package onlytests",
		"internal/x/a.go", "package x",
		"examples/y/main.go", "package main",
		"wallet/usdc/doc.go", "// Package usdc owes no headings.\npackage usdc",
	)
	assert.Equal(t, []string{"agentjob/bare", "agentjob/none"}, undocumented(parsed))
	assert.Equal(t, []string{"agentjob/doc.go has no heading # Security"}, missingHeadings(parsed))
}
