package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
	"github.com/agentjob/agentjob-go/agentjob/filestore"
)

// A closer is a local store.
type closer interface {
	agentjob.Store
	Close() error
}

// stores are the local stores by the name that -store takes.
var stores = map[string]func(dir string) (closer, error){
	"bolt": func(dir string) (closer, error) {
		return boltstore.Open(filepath.Join(dir, "agentjob.db"), boltstore.Options{})
	},
	"file": func(dir string) (closer, error) {
		return filestore.Open(filepath.Join(dir, "records"), filestore.Options{})
	},
}

func storeNames() string { return strings.Join(slices.Sorted(maps.Keys(stores)), " or ") }

func openStore(kind, dir string) (closer, error) {
	open := stores[kind]
	if open == nil {
		return nil, fmt.Errorf("there is no store %q, only %s", kind, storeNames())
	}
	return open(dir)
}

// withRecords opens the store while no provider has it, and hands over all records by their task.
func withRecords(ctx context.Context, kind, dir, provider string, do func(agentjob.Lease, map[string]agentjob.Record) error) (err error) {
	s, err := openStore(kind, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := s.Acquire(ctx, provider)
	if err != nil {
		return err
	}
	records := map[string]agentjob.Record{}
	for rec, err := range l.Records(ctx) {
		if err != nil {
			return errors.Join(err, l.Close())
		}
		records[rec.TaskID] = rec
	}
	return errors.Join(do(l, records), l.Close())
}
