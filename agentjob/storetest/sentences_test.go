package storetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// elsewhere are the sentences that no check of a store in one process can test.
var elsewhere = map[string]string{
	"The package boltstore is the default.":                                             "says nothing of a store",
	"A store seals the parts of a record that hold chat text ([EncodeRecord] does it).": "needs a look at the store's files: each store's own tests have one",
}

// Every sentence of the interface has its check, and every check its sentence.
func TestEverySentenceHasACheck(t *testing.T) {
	said := interfaceSentences(t)
	require.Greater(t, len(said), 20)
	tested := map[string]bool{}
	for _, c := range checks {
		assert.NotEmpty(t, c.says, c.name)
		for _, sentence := range c.says {
			tested[sentence] = true
			assert.Contains(t, said, sentence, "%s tests a sentence that isn't there", c.name)
		}
	}
	for _, sentence := range said {
		assert.True(t, tested[sentence] || elsewhere[sentence] != "", "no check is of the sentence %q", sentence)
	}
	for sentence := range elsewhere {
		assert.Contains(t, said, sentence)
	}
}

// interfaceSentences returns the documentation of Store and Lease.
func interfaceSentences(t *testing.T) (sentences []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "../store.go", nil, parser.ParseComments)
	require.NoError(t, err)
	for _, decl := range file.Decls {
		types, ok := decl.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		of, ok := types.Specs[0].(*ast.TypeSpec).Type.(*ast.InterfaceType)
		if !ok {
			continue
		}
		docs := []*ast.CommentGroup{types.Doc}
		for _, method := range of.Methods.List {
			docs = append(docs, method.Doc)
		}
		for _, doc := range docs {
			text := strings.Join(strings.Fields(doc.Text()), " ")
			ends := regexp.MustCompile(`\. |\.$`).FindAllStringIndex(text, -1)
			start := 0
			for _, end := range ends {
				sentences = append(sentences, strings.TrimSpace(text[start:end[1]]))
				start = end[1]
			}
			require.Equal(t, len(text), start, "a sentence without an end: %s", text)
		}
	}
	return slices.Compact(sentences)
}
