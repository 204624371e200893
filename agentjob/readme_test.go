package agentjob_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReadmeShowsTheExample holds the README's program to the function that the compiled
// Example runs.
func TestReadmeShowsTheExample(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "example_test.go", source, 0)
	require.NoError(t, err)
	var serve string
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == "serve" {
			serve = string(source[files.Position(f.Pos()).Offset:files.Position(f.End()).Offset])
		}
	}
	require.NotEmpty(t, serve)

	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(strings.ReplaceAll(string(readme), "\r\n", "\n"), "```go\n")
	require.True(t, ok, "README.md has a block of Go")
	block, _, ok := strings.Cut(rest, "\n```")
	require.True(t, ok, "which ends")
	assert.Equal(t, serve, block)
}
