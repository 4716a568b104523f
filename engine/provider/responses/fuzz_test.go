package responses_test

import (
	"net/http"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/endpoint"
	"lashd/engine/provider/providertest"
	"lashd/engine/provider/responses"
)

func FuzzStream(f *testing.F) {
	providertest.FuzzStream(f, "responses", func(client *http.Client) provider.Provider {
		return responses.New(responses.Config{Config: endpoint.Config{BaseURL: "http://model.test", HTTPClient: client}})
	})
}
