// Package privatefile reads and writes files that only their owner may see,
// so that a power cut leaves the old content or the new, never a mixture.
//
// It checks the permission bits of Unix. Windows has access lists instead,
// which are not checked. On neither is the owner of a file checked.
package privatefile
