// Package arch has no code, only tests: they hold the import arrows between the
// packages of this repository and the house rules that a machine can see.
//
// The arrows are a table in arrows_test.go, each with its reason. A rule
// about packages still to be written names them in future, so that no rule
// stands there matching nothing. Each rule is also shown a tree that breaks it.
package arch
