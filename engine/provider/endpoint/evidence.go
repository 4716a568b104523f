package endpoint

import (
	"cmp"
	"encoding/json"
	"strings"

	"lashd/rpc/protocol"
)

// Fact is a text that a server reports about a call. Anything but a JSON string is read as no report, because no reply fails
// for a fact that is only recorded.
type Fact string

// UnmarshalJSON implements json.Unmarshaler.
func (f *Fact) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*f = Fact(text)
	}
	return nil
}

// factLimit bounds a stored Fact, in bytes.
const factLimit = 256

// Served notes what the server reports about the call: the model that answers, the service tier and the id of the reply. An empty fact
// changes nothing; otherwise the last report counts. The facts are sent with the end of the reply, also if it fails.
func (r *Reply) Served(model, tier, id Fact) {
	if model == "" && tier == "" && id == "" {
		return
	}
	r.served = protocol.CallEvidence{
		Model:       cmp.Or(string(model), r.served.Model),
		ServiceTier: cmp.Or(string(tier), r.served.ServiceTier),
		ResponseID:  cmp.Or(string(id), r.served.ResponseID),
	}
}

// evidence returns the noted facts without keys; nil if there is none.
func (r *Reply) evidence() *protocol.CallEvidence {
	s := &r.served
	if *s == (protocol.CallEvidence{}) {
		return nil
	}
	return &protocol.CallEvidence{Model: r.fact(s.Model), ServiceTier: r.fact(s.ServiceTier), ResponseID: r.fact(s.ResponseID)}
}

// fact returns a fact as it can be stored.
// A server may repeat the key in it, and is free to send any length.
func (r *Reply) fact(text string) string {
	text = r.answer.mask(text)
	return strings.ToValidUTF8(text[:min(len(text), factLimit)], "")
}
