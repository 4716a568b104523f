package tool

import (
	"cmp"
	"encoding/json"

	"lashd/rpc/protocol"
)

// Records returns all tools of the registry behind the catalog, including those that the catalog leaves out, ordered by
// id. Clients list them to show and change settings. Contracts that cannot be fetched are left empty.
func (c *Catalog) Records() []protocol.ToolRecord {
	records := make([]protocol.ToolRecord, 0, len(c.all.entries))
	for _, it := range c.all.sorted() {
		_, in := c.index[it.Manifest.Name]
		records = append(records, it.record(in && !it.orphan()))
	}
	return records
}

// record describes a tool for clients. member is whether the catalog has it.
func (it item) record(member bool) protocol.ToolRecord {
	r := protocol.ToolRecord{
		ToolManifest: it.Manifest, Source: it.Entry.Source(), Orphan: it.orphan(), Availability: it.availability(),
		Member: member, Document: member && it.override != protocol.ToolCallable,
	}
	if t, err := it.terms(); err == nil {
		r.ToolManifest.Input, r.Contract, r.Revision = t.Input, t.ToolContract, t.revision
		r.Contract.Input = nil // already in the manifest
	}
	// Four bytes per token is the usual estimate for English and JSON.
	r.Tokens = (len(r.Name) + len(r.Description) + len(r.ToolManifest.Input)) / 4
	return r
}

// Record is a tool of the catalog in the form that plugins see.
type Record struct {
	ID          string                     `json:"id"`
	Name        string                     `json:"name"`
	Description string                     `json:"description"`
	Bindings    map[string]json.RawMessage `json:"bindings"`
	Activation  protocol.ToolActivation    `json:"activation"`
	Contract    *protocol.ToolContract     `json:"contract,omitempty"` // absent if it cannot be fetched
}

// Project returns the catalog in the form that plugins see, in its order.
func (c *Catalog) Project() []Record {
	records := make([]Record, len(c.entries))
	for i, e := range c.entries {
		records[i] = e.project()
	}
	return records
}

// project converts one entry; absent fields get the defaults of the plugin protocol.
func (e *Entry) project() Record {
	m := e.Manifest
	r := Record{
		ID: m.ID, Name: m.Name, Description: m.Description, Bindings: m.Bindings,
		Activation: cmp.Or(m.Activation, protocol.ActivateAlways),
	}
	if r.Bindings == nil {
		r.Bindings = map[string]json.RawMessage{}
	}
	if contract, err := e.Contract(); err == nil {
		r.Contract = &contract
	}
	return r
}
