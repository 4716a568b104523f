// Package knownmodels is a table of models that vendors offer: their limits, inputs, reasoning efforts and prices. The table is data with a
// date; the configuration overrides each field, and a model that is not in it works with defaults.
package knownmodels

import "lashd/rpc/protocol"

// Model is one model. Spec.Provider is the name of the provider's preset.
type Model struct {
	ID    string
	Title string // name for people
	Spec  protocol.ModelSpec
	Price *protocol.Price // nil: not known
}

// Of returns the models of a provider, the vendor's newest first.
func Of(provider string) []Model { return table[provider] }

// Find returns a model of a provider and reports whether it is known.
func Find(provider, id string) (Model, bool) {
	for _, m := range table[provider] {
		if m.ID == id {
			return m, true
		}
	}
	return Model{}, false
}

// Default returns the id of the model to start with, "" if the provider is not known.
func Default(provider string) string {
	if len(table[provider]) == 0 {
		return ""
	}
	return table[provider][0].ID
}

// table has the models by provider.
var table = map[string][]Model{}
