package arch

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	leaves      = []string{"./protocol/opt", "./wallet/usdc", "./connections/secret"}
	internals   = []string{"./internal/..."}
	tools       = []string{"./internal/cmd/...", "./internal/scripttest/..."} // they compose what they measure or script
	heavy       = []string{"github.com/ethereum/...", "github.com/jackc/...", "github.com/lib/pq", "github.com/mattn/go-sqlite3", "modernc.org/...", "go.opentelemetry.io/..."}
	testLibrary = []string{"github.com/stretchr/testify/...", "github.com/jarcoal/httpmock/...", "go.uber.org/goleak/..."}
)

// future names the patterns whose packages are still to come.
var future = []string{
	"./agentjob/connector/...", "./agentjob/fleet/...",
	"./harness/...", "./harness/acp/...",
	"./protocol/...", "./protocol/opt",
	"./wallet/providerrail/...",
	"./internal/scripttest/...",
}

var arrows = []arrow{{
	from: []string{"./protocol/..."}, never: []string{"..."}, but: []string{"std", "./protocol/..."},
	why: "protocol is the contract with user interfaces, which must cost its users nothing but the standard library",
}, {
	from: []string{"./wallet/usdc"}, never: []string{"..."}, but: []string{"std"},
	why: "usdc is a leaf that everybody imports, so it imports the standard library only",
}, {
	from: []string{"./connections/secret"}, never: []string{"..."}, but: []string{"std", "./internal/privatefile"},
	why: "secret is a leaf that everybody imports, and whoever audits it should have little to read",
}, {
	from: []string{"./internal/privatefile"}, never: []string{"..."}, but: []string{"std"},
	why: "privatefile is below the leaf secret",
}, {
	from: internals, not: tools, never: []string{"./..."}, but: slices.Concat(internals, leaves),
	why: "internal helpers serve all public packages, so importing one of them (leaves apart) would soon be a circle",
}, {
	from: []string{"./agentjob/..."}, not: []string{"./agentjob/connector/...", "./agentjob/fleet/..."},
	never: []string{"./harness/...", "./connections/...", "./wallet/...", "./protocol/..."}, but: leaves,
	why: "a provider whose agent is one function must not get engines, accounts and wallets with it; agentjob/connector composes them",
}, {
	from: []string{"./harness/..."}, never: []string{"./agentjob/...", "./connections/...", "./wallet/..."}, but: leaves,
	why: "an adapter must be usable without the platform; it receives access as facts from whoever composes",
}, {
	from: []string{"./harness/..."}, not: []string{"./harness/acp/..."}, never: []string{"./protocol/..."}, but: leaves,
	why: "only ACP speaks of user interfaces; the other engines don't need the contract with them",
}, {
	from: []string{"./connections/..."}, never: []string{"./agentjob/...", "./harness/...", "./wallet/...", "./protocol/..."}, but: leaves,
	why: "accounts hand out facts and don't know who uses them",
}, {
	from: []string{"./wallet/..."}, not: []string{"./wallet/providerrail/..."},
	never: []string{"./agentjob/...", "./harness/...", "./connections/...", "./protocol/..."}, but: leaves,
	why: "money moves without knowing of tasks; wallet/providerrail is the one bridge",
}, {
	from: []string{"./wallet/providerrail/..."}, never: []string{"./harness/...", "./connections/...", "./protocol/..."}, but: leaves,
	why: "the bridge joins wallet to agentjob.Client and to nothing else",
}, {
	from: []string{"root"}, never: heavy,
	why: "whoever imports the root module must not get chains, SQL drivers or telemetry with it: those packages are modules of their own",
}, {
	from: []string{"./..."}, never: testLibrary,
	why: "test libraries stay in _test.go files, or they are linked into users' programs",
}, {
	from: []string{"./agentjob", "./agentjob/agentjobtest/...", "./agentjob/storetest/..."}, never: []string{"go.etcd.io/bbolt/..."},
	why: "bbolt is the choice of those who import agentjob/boltstore",
}}

func TestArrows(t *testing.T) {
	g, err := loadGraph()
	require.NoError(t, err)
	for _, a := range arrows {
		assert.Empty(t, strings.Join(g.broken(a), "\n"))
	}
	assert.Empty(t, strings.Join(g.stale(arrows, future), "\n"), "stale patterns")
}

// sample is a package that a pattern matches.
func sample(pattern string) node {
	switch pattern {
	case "std":
		return node{ImportPath: "io/fs", Standard: true}
	case "...":
		return node{ImportPath: "example.com/foreign"}
	case "root":
		pattern = "./anything"
	}
	p := strings.TrimSuffix(pattern, "/...")
	if p != pattern {
		p += "/sub"
	}
	if strings.HasPrefix(p, "./") {
		return node{ImportPath: path.Join(rootModule, p), Module: &struct{ Path string }{rootModule}}
	}
	return node{ImportPath: p}
}

// world is a graph in which from imports to by way of a package between them.
func world(from, to string) graph {
	first, last := sample(from), sample(to)
	between := node{ImportPath: "example.com/between", Imports: []string{last.ImportPath}}
	first.Imports = []string{"C", between.ImportPath}
	g := graph{}
	for _, n := range []node{last, between, first} { // from is written last, should it match to
		g[n.ImportPath] = n
	}
	return g
}

func TestEveryArrowCanBreak(t *testing.T) {
	for _, a := range arrows {
		for _, from := range a.from {
			for _, never := range a.never {
				if sample(from).ImportPath == sample(never).ImportPath {
					continue
				}
				if never == "..." { // world's package between is foreign too, and is the nearer one
					assert.Len(t, world(from, never).broken(a), 1, a.why)
					continue
				}
				lines := strings.Join(world(from, never).broken(a), "\n")
				assert.Contains(t, lines, " -> example.com/between -> ", "%s to %s", from, never)
				assert.Contains(t, lines, a.why)
			}
		}
	}
}

func TestExceptionsOfArrowsAreHonoured(t *testing.T) {
	for _, a := range arrows {
		for _, but := range a.but {
			first, last := sample(a.from[0]), sample(but)
			first.Imports = []string{last.ImportPath}
			assert.Empty(t, graph{first.ImportPath: first, last.ImportPath: last}.broken(a), "%s may import %s", a.from[0], but)
		}
		for _, not := range a.not {
			assert.Empty(t, world(not, a.never[0]).broken(a), "%s is excepted: %s", not, a.why)
		}
	}
}

func TestTheShortestChainIsReported(t *testing.T) {
	mine := func(p string, imports ...string) node { n := sample("./" + p); n.Imports = imports; return n }
	at := func(p string) string { return rootModule + "/" + p }
	g := graph{}
	for _, n := range []node{
		mine("agentjob", at("a"), at("b")), mine("a", at("c")), mine("b", "example.com/heavy/x"), mine("c", at("a"), "example.com/heavy/x"),
		{ImportPath: "example.com/heavy/x"},
	} {
		g[n.ImportPath] = n
	}
	rule := arrow{from: []string{"./agentjob/..."}, never: []string{"example.com/heavy/..."}, why: "of its weight"}
	assert.Equal(t, []string{"agentjob -> b -> example.com/heavy/x\n\tmust not be: of its weight"}, g.broken(rule))
}

func TestARuleCantMatchNothingUnnoticed(t *testing.T) {
	g := graph{}
	for _, pattern := range []string{"./agentjob", "./agentjobs"} {
		n := sample(pattern)
		g[n.ImportPath] = n
	}
	rules := []arrow{{from: []string{"./agentjob/..."}, never: []string{"./gone", "./later", "example.com/x"}}}
	assert.Equal(t, []string{
		"./agentjob/... exists now: remove it from future",
		"./gone matches no package: mend the pattern, or add it to future until the package exists",
		"./typo in future is in no arrow: remove it",
	}, g.stale(rules, []string{"./agentjob/...", "./later", "./typo"}))
	assert.False(t, sample("./agentjobs").is("./agentjob/..."), "a longer name is another folder")
}
