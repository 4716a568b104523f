package worker

// LimitProcess is limitProcess.
var LimitProcess = limitProcess

// Members is members.
var Members = members
