package gemini_test

import (
	"net/http"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/gemini"
	"lashd/engine/provider/providertest"
)

func FuzzStream(f *testing.F) {
	providertest.FuzzStream(f, "gemini", func(client *http.Client) provider.Provider {
		return gemini.New(gemini.Config{BaseURL: "http://model.test", HTTPClient: client})
	})
}
