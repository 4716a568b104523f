package protocol

// ProviderInfo is a provider of models: one that lashd knows, or one of config.toml. It has no key.
type ProviderInfo struct {
	Name        string   `json:"name"`
	Title       string   `json:"title"`                 // for people, such as Anthropic
	BaseURL     string   `json:"baseUrl,omitempty"`     // without user and query, which can have a key; absent: a person must name it
	BaseURLForm string   `json:"baseUrlForm,omitempty"` // form of an address that a person must name
	KeysAt      string   `json:"keysAt,omitempty"`      // web page where a person gets a key
	Local       bool     `json:"local,omitempty"`       // a server on this machine, which needs no key
	Pasted      bool     `json:"pasted,omitempty"`      // provider/setKey stores a key that a person pastes
	Login       bool     `json:"login,omitempty"`       // provider/beginLogin logs a person in with a browser
	Key         string   `json:"key,omitempty"`         // where the key comes from: stored, config.toml, client, or the name of an environment variable; absent: there is none
	Stored      bool     `json:"stored,omitempty"`      // provider/removeKey can delete a key or a login
	Models      []string `json:"models,omitempty"`      // ids of the models of a local server that runs
	KeyWanted   bool     `json:"keyWanted,omitempty"`   // the local server runs, but takes no request without a key; provider/setKey stores one
}

// ProviderListResult lists providers: those that lashd knows, then the others of config.toml.
type ProviderListResult struct {
	Data []ProviderInfo `json:"data"`
}

// ProviderSetKeyParams has the API key of a provider. lashd tests the key with one small call before it stores it.
type ProviderSetKeyParams struct {
	Name     string `json:"name"`
	Key      string `json:"key"`                // as a person pasted it
	BaseURL  string `json:"baseUrl,omitempty"`  // also write this address of the provider into config.toml, if the key works
	Untested bool   `json:"untested,omitempty"` // store the key without a test
}

// StoredKey says where lashd stored a key or a login.
type StoredKey struct {
	File           string   `json:"file,omitempty"`           // absent: in the system's keyring
	KeyringProblem string   `json:"keyringProblem,omitempty"` // why the keyring did not take it
	UsedFirst      []string `json:"usedFirst,omitempty"`      // environment variables whose key lashd uses before the stored one
	Restart        bool     `json:"restart,omitempty"`        // the daemon uses the change after its restart
}

// ProviderSetAddressParams has the address of a server that needs no key. lashd asks the server for its models before it writes the address.
type ProviderSetAddressParams struct {
	Name    string `json:"name"`
	BaseURL string `json:"baseUrl"`
}

// ProviderSetAddressResult says whether lashd wrote the address.
type ProviderSetAddressResult struct {
	KeyWanted bool `json:"keyWanted,omitempty"` // no: the server wants a key; use provider/setKey with the key and the address
	Restart   bool `json:"restart,omitempty"`   // yes, and the daemon uses it after its restart
}

// ProviderModelsResult has the models that the server of a provider lists.
type ProviderModelsResult struct {
	Data []string `json:"data"` // ids; empty if the server has no list
}

// ProviderParams names a provider.
type ProviderParams struct {
	Name string `json:"name"`
}

// ProviderRemoveKeyResult says what is left after the removal of a key.
type ProviderRemoveKeyResult struct {
	Key string `json:"key,omitempty"` // where a key of the provider still comes from, as in ProviderInfo
}

// ProviderBeginLoginParams begins the login to a provider that takes one in place of a key.
type ProviderBeginLoginParams struct {
	Name   string `json:"name"`
	Device bool   `json:"device,omitempty"` // with a code that the person enters on any device
}

// ProviderBeginLoginResult is what a person needs for a login.
type ProviderBeginLoginResult struct {
	LoginID  string `json:"loginId"`            // for provider/finishLogin; valid for 15 minutes
	URL      string `json:"url"`                // page to open in a browser
	Redirect string `json:"redirect,omitempty"` // beginning of the address that the browser opens after the login and cannot load; the person copies all of it
	Code     string `json:"code,omitempty"`     // with device: to enter on that page
}

// ProviderFinishLoginParams finishes a login.
type ProviderFinishLoginParams struct {
	LoginID string `json:"loginId"`
	Address string `json:"address,omitempty"` // address that the browser opened; absent with device: lashd waits until the person has entered the code
}

// ModelTestParams names the model to test.
type ModelTestParams struct {
	Name string `json:"name,omitempty"` // default the default model
}

// ModelTestResult is the reply of a model to a prompt of two words.
type ModelTestResult struct {
	Name       string `json:"name"`
	Text       string `json:"text"`
	DurationMs int64  `json:"durationMs"`
}

// ModelSetDefaultResult says whether new sessions use the model at once.
type ModelSetDefaultResult struct {
	Restart bool `json:"restart,omitempty"` // the daemon uses the model after its restart
}

// ModelSetDefaultParams names the model of new sessions.
type ModelSetDefaultParams struct {
	Name string `json:"name"` // PROVIDER/ID, or a name from model/list
}
