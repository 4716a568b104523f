package engine

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// A wait is known by the id of its decision to everybody who watches the session, plugins included. Its key is more than that:
// it is signed, so that only who was given it can complete the call, and good for exactly this wait of this call in this turn of
// this session. It goes with the decision, which goes with its session.

// keyOf is the key of a wait.
func (e *Engine) keyOf(d *protocol.Decision) protocol.CompletionKey {
	sign := hmac.New(sha256.New, []byte(e.store.Facts().Secret))
	for _, part := range []string{"completion", string(d.SessionID), string(d.TurnID), string(d.Call.CallID), string(d.ID)} {
		fmt.Fprintf(sign, "%d:%s", len(part), part)
	}
	return protocol.CompletionKey(string(d.ID) + "." + hex.EncodeToString(sign.Sum(nil)[:16]))
}

// waitOf is the wait that a key was given for, or ErrNoCompletion.
func (e *Engine) waitOf(ctx context.Context, key protocol.CompletionKey) (protocol.Decision, error) {
	unknown := fmt.Errorf("key %.40q: %w", key, ErrNoCompletion)
	id, _, signed := strings.Cut(string(key), ".")
	if !signed {
		return protocol.Decision{}, unknown
	}
	d, err := e.store.Decision(ctx, protocol.DecisionID(id))
	switch {
	case isMissing(err), err == nil && (d.Kind != protocol.DecisionCompletion || !hmac.Equal([]byte(e.keyOf(&d)), []byte(key))):
		return protocol.Decision{}, unknown
	case err != nil:
		return protocol.Decision{}, err
	}
	return d, nil
}
