package main

import (
	"fmt"
	"path/filepath"

	"github.com/agentjob/agentjob-go/agentjob"
	"github.com/agentjob/agentjob-go/agentjob/boltstore"
	"github.com/agentjob/agentjob-go/agentjob/filestore"
)

// A localStore is a store in files.
type localStore interface {
	agentjob.Store
	Close() error
}

// A kind is a store whose files this command can follow. Open opens it below a folder, or makes it there.
type kind struct {
	name string
	open func(folder string) (localStore, error)
}

var kinds = []kind{
	{"bolt", func(folder string) (localStore, error) {
		return boltstore.Open(filepath.Join(folder, "state", "agentjob.db"), boltstore.Options{})
	}},
	{"file", func(folder string) (localStore, error) {
		return filestore.Open(filepath.Join(folder, "state"), filestore.Options{})
	}},
}

func kindNamed(name string) (kind, error) {
	for _, k := range kinds {
		if k.name == name {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("there is no store %q; -help names those there are", name)
}
