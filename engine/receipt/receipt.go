// Package receipt gives a request that is repeated with its idempotency key the answer of the first. The commit of a request stores its
// receipt, with the answer, and refuses a second one for the same key; so a key counts after a crash, too. The engine's methods call it, from
// any goroutine.
package receipt

import (
	"crypto/sha256"
	"encoding/json"

	"lashd/engine/param"
	"lashd/persistence"
)

// Request is what a receipt knows of a request. The zero Request has no idempotency key, and is never found to be repeated.
type Request struct {
	Key  string // idempotency key
	Hash []byte // of the method and its params
}

// With returns the receipt for the commit of the request, with the result that a repetition will get; nil without a key.
func (rc Request) With(result any) *persistence.Receipt {
	if rc.Key == "" {
		return nil
	}
	return &persistence.Receipt{Key: rc.Key, Hash: rc.Hash, Result: encoded(result)}
}

// Begun returns the receipt to commit before the request does what must not be done twice. Until With replaces it, repetitions get ErrBegun.
func (rc Request) Begun() *persistence.Receipt {
	return &persistence.Receipt{Key: rc.Key, Hash: rc.Hash}
}

// For returns a request to a method. Its hash covers the params without the key itself.
func For(method, key string, params any) (Request, error) {
	if key == "" {
		return Request{}, nil
	}
	if err := param.CheckName("/idempotencyKey", key); err != nil {
		return Request{}, err
	}
	sum := sha256.New()
	sum.Write([]byte(method + "\n"))
	sum.Write(withoutKey(params))
	return Request{Key: key, Hash: sum.Sum(nil)}, nil
}

// withoutKey returns params as canonical JSON: fields in the order of the type, maps in the order of their keys.
func withoutKey(params any) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(encoded(params), &fields) != nil {
		return encoded(params)
	}
	delete(fields, "idempotencyKey")
	return encoded(fields)
}

// encoded returns a value of our own types as JSON.
func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}
