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
	part  *part      // that it is
	id    string

	mu     sync.Mutex
	known  *terms
	asking chan struct{} // closed once the maker has answered who has asked; nil: nobody has
}

// terms are a contract with what follows from it.
type terms struct {
	protocol.ToolContract
	schema   *schema
	revision protocol.Digest
}

func newContract(p *part, m protocol.ToolManifest, c protocol.ToolContract) *contract {
	if maker, ok := p.provider.(Contractor); ok {
		return &contract{maker: maker, part: p, id: m.ID}
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

// of is the contract of a manifest, made if it must be. Several who want it at once ask once.
func (c *contract) of(m protocol.ToolManifest) (*terms, error) {
	for {
		known, theirs := c.begin()
		switch {
		case known != nil:
			return known, nil
		case theirs == nil:
			return c.make(m)
		}
		<-theirs
	}
}

// begin is the contract, or who is asking for it. Without either, it is whoever calls.
func (c *contract) begin() (known *terms, theirs <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil && c.asking == nil {
		c.asking = make(chan struct{})
		return nil, nil
	}
	return c.known, c.asking
}

var errNoContract = errors.New("nothing knows the contract")

func (c *contract) make(m protocol.ToolManifest) (*terms, error) {
	made, err := protocol.ToolContract{}, errNoContract
	if c.maker != nil {
		made, err = within(c.part, "contract", func() (protocol.ToolContract, error) { return c.maker.Contract(c.id) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.asking)
	c.asking = nil
	if err != nil {
		return nil, err
	}
	c.known = newTerms(m, made)
	return c.known, nil
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
