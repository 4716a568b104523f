package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"sync"

	"lashd/rpc/protocol"
)

// split takes a tool as its provider gives it apart. The schema goes into the contract, and the id is there.
func split(t Tool) (protocol.ToolManifest, protocol.ToolContract) {
	m, c := t.Manifest, t.Contract
	m.ID = cmp.Or(m.ID, m.Name)
	if len(c.Input) == 0 {
		c.Input = m.Input
	}
	m.Input = nil
	return m, c
}

// contract is what is known of a tool's contract. It is made when it is first needed, and shared by all registries in
// which the tool is the same.
type contract struct {
	maker Contractor // nil: made from the start
	id    string

	mu    sync.Mutex
	known *terms
}

// terms are a contract with what follows from it.
type terms struct {
	protocol.ToolContract
	schema   *schema
	revision protocol.Digest
}

func newContract(p Provider, m protocol.ToolManifest, c protocol.ToolContract) *contract {
	if maker, ok := p.(Contractor); ok {
		return &contract{maker: maker, id: m.ID}
	}
	return &contract{known: newTerms(m, c)}
}

func newTerms(m protocol.ToolManifest, c protocol.ToolContract) *terms {
	return &terms{ToolContract: c, schema: newSchema(c.Input), revision: revision(m, c)}
}

func revision(m protocol.ToolManifest, c protocol.ToolContract) protocol.Digest {
	text, err := json.Marshal(Tool{m, c})
	if err != nil { // the schema is no JSON: every call will fail, and the revision still says which schema it was
		text = c.Input
	}
	return protocol.DigestOf(text)
}

// of is the contract of a manifest, made if it must be.
func (c *contract) of(m protocol.ToolManifest) (*terms, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known != nil {
		return c.known, nil
	}
	made, err := c.make()
	if err != nil {
		return nil, err
	}
	c.known = newTerms(m, made)
	return c.known, nil
}

var errNoContract = errors.New("nothing knows the contract")

func (c *contract) make() (made protocol.ToolContract, err error) {
	defer guard(&err)
	if c.maker == nil {
		return made, errNoContract
	}
	return c.maker.Contract(c.id)
}

// same tells whether a tool that a provider lists now is what it was, contract and all.
func (e *Entry) same(p *part, m protocol.ToolManifest, c protocol.ToolContract) bool {
	if !reflect.DeepEqual(e.Manifest, m) {
		return false
	}
	if _, lazy := p.provider.(Contractor); lazy || e.contract.maker != nil {
		return e.from == p
	}
	return reflect.DeepEqual(e.contract.known.ToolContract, c)
}
