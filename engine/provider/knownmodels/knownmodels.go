// Package knownmodels is a table of models that vendors offer: their limits, inputs, reasoning efforts and prices. The table is data with a
// date; the configuration overrides each field, and a model that is not in it works with defaults.
//
// The data is in the directory models, a file for each provider, from charm.land/catwalk (MIT, see models/LICENSE). A module of its own writes
// it, from the version of catwalk in that module's go.mod:
//
//	cd generate && go run . ../models
package knownmodels

import (
	"embed"
	"encoding/json"
	"sync"

	"lashd/rpc/protocol"
)

// Model is one model. Its Spec has no Provider and no ID.
type Model struct {
	ID    string             `json:"id"`
	Title string             `json:"title"` // name for people
	Spec  protocol.ModelSpec `json:"spec"`
	Price *protocol.Price    `json:"price"`
}

// vendor has the models of one provider.
type vendor struct {
	Default string
	Models  []Model
}

// files has a file for each provider, with the name of its preset, and the license of the data.
//
//go:embed models
var files embed.FS

// read has the providers that were asked for. Reading all of them at once would be a tenth of the time that lashd takes to start.
var read sync.Map // provider to *vendor

// of returns the models of a provider; none if it is not known.
func of(provider string) *vendor {
	if v, ok := read.Load(provider); ok {
		return v.(*vendor)
	}
	data, err := files.ReadFile("models/" + provider + ".json")
	if err != nil {
		return &vendor{} // no such file
	}
	v := &vendor{}
	if err := json.Unmarshal(data, v); err != nil {
		panic("knownmodels: the models of " + provider + ", which tests of lashd read: " + err.Error())
	}
	known, _ := read.LoadOrStore(provider, v)
	return known.(*vendor)
}

// Of returns the models of a provider in the order of the table's source, which begins with new ones. Callers do not change the result.
func Of(provider string) []Model { return of(provider).Models }

// Find returns a model of a provider and reports whether it is known. Callers do not change what it points to.
func Find(provider, id string) (Model, bool) {
	for _, m := range of(provider).Models {
		if m.ID == id {
			return m, true
		}
	}
	return Model{}, false
}

// Default returns the id of the model to start with, "" if the provider is not known.
func Default(provider string) string { return of(provider).Default }
