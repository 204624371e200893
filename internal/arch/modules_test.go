package arch

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// module is a go.mod as "go mod edit -json" prints it.
type module struct {
	Module  struct{ Path string }
	Require []struct{ Path string }
	Replace []struct{ Old, New struct{ Path string } }
}

func workspaceFolders(t *testing.T) []string {
	t.Helper()
	out, err := goTool("work", "edit", "-json")
	require.NoError(t, err)
	var work struct{ Use []struct{ DiskPath string } }
	require.NoError(t, json.Unmarshal(out, &work))
	var folders []string
	for _, use := range work.Use {
		folders = append(folders, path.Clean(use.DiskPath))
	}
	return folders
}

func TestModulesNameTheirSiblings(t *testing.T) {
	modules := map[string]module{}
	for _, folder := range workspaceFolders(t) {
		out, err := goTool("mod", "edit", "-json", path.Join(folder, "go.mod"))
		require.NoError(t, err)
		var m module
		require.NoError(t, json.Unmarshal(out, &m))
		modules[folder] = m
	}
	require.Contains(t, modules, ".")
	assert.Equal(t, rootModule, modules["."].Module.Path)
	assert.Empty(t, strings.Join(unreplaced(modules), "\n"))
}

// unreplaced finds what stops a module from building unpublished and outside the workspace: a
// sibling that it requires without a replace line to the sibling's folder, or no sibling at all.
// The root requires none and replaces nothing.
func unreplaced(modules map[string]module) []string {
	folderOf := map[string]string{}
	for folder, m := range modules {
		folderOf[m.Module.Path] = folder
	}
	var found []string
	for folder, m := range modules {
		goMod := path.Join(folder, "go.mod")
		replaced := map[string]string{}
		for _, r := range m.Replace {
			replaced[r.Old.Path] = path.Join(folder, r.New.Path)
		}
		siblings := 0
		for _, r := range m.Require {
			sibling, ok := folderOf[r.Path]
			if !ok {
				continue
			}
			siblings++
			if replaced[r.Path] != sibling {
				found = append(found, goMod+" requires "+r.Path+" without a replace line to its folder")
			}
		}
		switch {
		case folder == "." && siblings+len(replaced) > 0:
			found = append(found, goMod+" must require no sibling and replace nothing")
		case folder != "." && siblings == 0:
			found = append(found, goMod+" requires no sibling: then why is it here?")
		case m.Module.Path != path.Join(rootModule, folder):
			found = append(found, goMod+" must name its module by its folder: "+path.Join(rootModule, folder))
		}
	}
	slices.Sort(found)
	return found
}

// strayModules finds folders with a go.mod that go.work doesn't use. tools stays out of it, so that
// the versions of its tools don't choose those of the workspace.
func strayModules(files tree, workspace []string) []string {
	var found []string
	for _, p := range files.paths() {
		folder, name := path.Dir(p), path.Base(p)
		if name == "go.mod" && folder != "tools" && !under(p, "testdata") && !slices.Contains(workspace, folder) {
			found = append(found, p+" is not in go.work")
		}
	}
	return found
}

// heavyModules reads the root's module graph: a module in it chooses versions for
// users even if no package of it is built.
func heavyModules(files tree) []string {
	var found []string
	for _, name := range []string{"go.mod", "go.sum"} {
		for _, word := range strings.Fields(files[name]) {
			if (node{ImportPath: word}).isAny(heavy) {
				found = append(found, "the root's "+name+" names "+word)
			}
		}
	}
	return slices.Compact(found)
}

func TestModuleRulesCanFail(t *testing.T) {
	parse := func(text string) (m module) {
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		return m
	}
	self := func(sub string) string { return `"Module":{"Path":"` + path.Join(rootModule, sub) + `"}` }
	requiresRoot := `"Require":[{"Path":"` + rootModule + `"},{"Path":"example.com/x"}]`
	replacesRoot := func(by string) string {
		return `"Replace":[{"Old":{"Path":"` + rootModule + `"},"New":{"Path":"` + by + `"}}]`
	}
	assert.Equal(t, []string{
		"alone/go.mod requires no sibling: then why is it here?",
		"bare/go.mod requires " + rootModule + " without a replace line to its folder",
		"deep/wrong/go.mod requires " + rootModule + " without a replace line to its folder",
		"go.mod must require no sibling and replace nothing",
		"named/go.mod must name its module by its folder: " + rootModule + "/named",
	}, unreplaced(map[string]module{
		".":          parse(`{` + self("") + `,"Replace":[{"Old":{"Path":"example.com/x"},"New":{"Path":"../x"}}]}`),
		"good":       parse(`{` + self("good") + `,` + requiresRoot + `,` + replacesRoot("../") + `}`),
		"deep/good":  parse(`{` + self("deep/good") + `,` + requiresRoot + `,` + replacesRoot("../..") + `}`),
		"deep/wrong": parse(`{` + self("deep/wrong") + `,` + requiresRoot + `,` + replacesRoot("../") + `}`),
		"bare":       parse(`{` + self("bare") + `,` + requiresRoot + `}`),
		"alone":      parse(`{` + self("alone") + `}`),
		"named":      parse(`{` + self("other") + `,` + requiresRoot + `,` + replacesRoot("../") + `}`),
	}))

	files, _ := fixture(t, "go.mod", "require (\n\tgo.opentelemetry.io/otel v1.0.0 // indirect\n\texample.com/x v1.0.0\n)",
		"go.sum", "github.com/jackc/pgx/v5 v5.0.0/go.mod h1:x=\n", "examples/go.mod", "", "tools/go.mod", "", "x/testdata/go.mod", "", "pgstore/go.mod", "")
	assert.Equal(t, []string{"pgstore/go.mod is not in go.work"}, strayModules(files, []string{".", "examples"}))
	assert.Equal(t, []string{"the root's go.mod names go.opentelemetry.io/otel", "the root's go.sum names github.com/jackc/pgx/v5"}, heavyModules(files))
}
