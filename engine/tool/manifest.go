package tool

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"sync"

	"lashd/rpc/protocol"
)

// split separates a tool from its provider into manifest and contract. The schema moves into the contract, and a
// missing id becomes the name.
func split(t Tool) (protocol.ToolManifest, protocol.ToolContract) {
	m, c := t.Manifest, t.Contract
	m.ID = cmp.Or(m.ID, m.Name)
	if len(c.Input) == 0 {
		c.Input = m.Input
	}
	m.Input = nil
	return m, c
}

// contract holds the contract of a tool. A lazy contract is fetched when first needed, and shared by all registries in
// which the tool is the same. Safe for concurrent use.
type contract struct {
	maker Contractor // nil: known from the start
	part  *part      // the provider that maker is
	id    string

	mu    sync.Mutex
	known *terms
	// asking is closed when the fetch in progress ends; nil: no fetch is running.
	asking chan struct{}
}

// terms are a contract with values derived from it.
type terms struct {
	protocol.ToolContract
	schema   *schema
	revision protocol.Digest // changes with the manifest or the contract
}

// newContract returns the contract of a listed tool, lazy if its provider is a Contractor.
func newContract(p *part, m protocol.ToolManifest, c protocol.ToolContract) *contract {
	if maker, ok := p.provider.(Contractor); ok {
		return &contract{maker: maker, part: p, id: m.ID}
	}
	return &contract{known: newTerms(m, c)}
}

func newTerms(m protocol.ToolManifest, c protocol.ToolContract) *terms {
	return &terms{ToolContract: c, schema: newSchema(c.Input), revision: revision(m, c)}
}

// revision returns the digest of a manifest and contract.
func revision(m protocol.ToolManifest, c protocol.ToolContract) protocol.Digest {
	text, err := json.Marshal(Tool{m, c})
	if err != nil { // the schema is not JSON: every call will fail; use its bytes
		text = c.Input
	}
	return protocol.DigestOf(text)
}

// of returns the contract, and fetches it if necessary. Concurrent callers share one fetch; after an error the next
// caller fetches again.
func (c *contract) of(m protocol.ToolManifest) (*terms, error) {
	for {
		known, running := c.begin()
		switch {
		case known != nil:
			return known, nil
		case running == nil:
			return c.make(m)
		}
		<-running
	}
}

// begin returns the contract, or the channel of a running fetch. If it returns neither, the caller must call make.
func (c *contract) begin() (known *terms, running <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil && c.asking == nil {
		c.asking = make(chan struct{})
		return nil, nil
	}
	return c.known, c.asking
}

var errNoContract = errors.New("no source provides the contract")

// make fetches the contract and wakes the callers that wait for it.
func (c *contract) make(m protocol.ToolManifest) (*terms, error) {
	made, err := protocol.ToolContract{}, errNoContract
	if c.maker != nil {
		made, err = withTimeout(c.part, "contract", func() (protocol.ToolContract, error) { return c.maker.Contract(c.id) })
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

// same reports whether a tool that a provider lists now equals e, including its contract. A lazy contract counts as the
// same if the provider is the same.
func (e *Entry) same(p *part, m protocol.ToolManifest, c protocol.ToolContract) bool {
	if !reflect.DeepEqual(e.Manifest, m) {
		return false
	}
	if _, lazy := p.provider.(Contractor); lazy || e.contract.maker != nil {
		return e.from == p
	}
	return reflect.DeepEqual(e.contract.known.ToolContract, c)
}
