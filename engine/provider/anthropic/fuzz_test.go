package anthropic_test

import (
	"net/http"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/anthropic"
	"lashd/engine/provider/providertest"
)

func FuzzStream(f *testing.F) {
	providertest.FuzzStream(f, "anthropic", func(client *http.Client) provider.Provider {
		return anthropic.New(anthropic.Config{BaseURL: "http://model.test", HTTPClient: client})
	})
}
