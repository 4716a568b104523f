// Package receipt implements idempotency keys: a repeated request gets the answer of the first one. The commit of a request
// stores a receipt with the answer, and the store rejects a second receipt for the same key, so keys also work across a crash.
// The engine's methods call this package from any goroutine.
package receipt

import (
	"crypto/sha256"
	"encoding/json"

	"lashd/engine/param"
	"lashd/persistence"
)

// Request identifies a request for its receipt. The zero Request has no key and is never a repetition.
type Request struct {
	Key  string // idempotency key
	Hash []byte // SHA-256 of the method and its params
	// Answer turns what the request did into its answer; nil: that is the answer.
	Answer func(done any) any
}

// With returns the receipt for the commit of the request. A repetition gets result as its answer. Without a key it
// returns nil.
func (rc Request) With(result any) *persistence.Receipt {
	if rc.Key == "" {
		return nil
	}
	return &persistence.Receipt{Key: rc.Key, Hash: rc.Hash, Result: rc.Encode(result)}
}

// Encode returns the answer of the request as the receipt stores it.
func (rc Request) Encode(result any) []byte {
	if rc.Answer != nil {
		result = rc.Answer(result)
	}
	return encoded(result)
}

// Begun returns the receipt to commit before the request does something that must not happen twice. Until With replaces
// it, repetitions fail with ErrBegun.
func (rc Request) Begun() *persistence.Receipt {
	return &persistence.Receipt{Key: rc.Key, Hash: rc.Hash}
}

// For returns the Request of a method call. Its hash covers the params without the key. An invalid key is an error.
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

// withoutKey returns the params as canonical JSON without the key: map keys are sorted.
func withoutKey(params any) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(encoded(params), &fields) != nil {
		return encoded(params)
	}
	delete(fields, "idempotencyKey")
	return encoded(fields)
}

// encoded returns the JSON of one of our own types, which cannot fail.
func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}
