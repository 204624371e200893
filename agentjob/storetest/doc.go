// Package storetest is the conformance suite of [agentjob.Store]: each check
// holds a store to a sentence of that interface.
//
// The smallest complete use, in a store's own test:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			Open: func(t testing.TB) agentjob.Store { return mystore.Open(t.TempDir()) },
//		})
//	}
//
// # What it can't show
//
// The suite opens and closes stores in one process. That a Put survives a power cut
// and that a second process is refused needs tests of the store's own.
//
// # Compatibility
//
// A later release may add checks. The package imports the standard library and agentjob.
package storetest
