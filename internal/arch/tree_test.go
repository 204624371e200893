package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// tree holds the checkout's files by their slash-separated paths, without what
// .gitignore keeps out of it.
//
// The files are read here, not listed by Git, so that go test sees them
// opened and runs the rules again when one changes.
type tree map[string]string

func readTree(fsys fs.FS) (tree, error) {
	files := tree{}
	err := fs.WalkDir(fsys, ".", func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == ".git" || p == "state":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil // .git is a file in a worktree; SkipDir would skip its neighbours
		case entry.Type().IsRegular() && !slices.Contains([]string{".env", ".test", ".out"}, path.Ext(p)):
			content, err := fs.ReadFile(fsys, p)
			files[p] = string(content)
			return err
		}
		return nil
	})
	return files, err
}

// goFile is a parsed Go file. Fixtures for tools, in testdata folders, are not parsed.
type goFile struct {
	path string
	*ast.File
	set *token.FileSet
}

func (f goFile) dir() string     { return path.Dir(f.path) }
func (f goFile) isTest() bool    { return strings.HasSuffix(f.path, "_test.go") }
func (f goFile) isProgram() bool { return under(f.path, "examples") || under(f.path, "cmd") }

// at is where a node is, with what is wrong there.
func (f goFile) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: ", f.path, f.set.Position(n.Pos()).Line) + fmt.Sprintf(format, args...)
}

// under reports whether a folder of that name is on the path.
func under(p, folder string) bool { return slices.Contains(strings.Split(path.Dir(p), "/"), folder) }

func (files tree) goFiles() ([]goFile, error) {
	var parsed []goFile
	for _, p := range files.paths() {
		if path.Ext(p) != ".go" || under(p, "testdata") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, p, files[p], parser.ParseComments)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, goFile{p, file, set})
	}
	return parsed, nil
}

func (files tree) paths() []string {
	paths := make([]string, 0, len(files))
	for p := range files {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// fixture reads a tree and parses its Go files from paths and contents in turn.
func fixture(t *testing.T, pathsAndContents ...string) (tree, []goFile) {
	t.Helper()
	fsys := fstest.MapFS{}
	for pair := range slices.Chunk(pathsAndContents, 2) {
		fsys[pair[0]] = &fstest.MapFile{Data: []byte(pair[1])}
	}
	return parse(t, fsys)
}

func parse(t *testing.T, fsys fs.FS) (tree, []goFile) {
	t.Helper()
	files, err := readTree(fsys)
	require.NoError(t, err)
	parsed, err := files.goFiles()
	require.NoError(t, err)
	return files, parsed
}
