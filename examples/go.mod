module github.com/agentjob/agentjob-go/examples

go 1.26

require github.com/agentjob/agentjob-go v0.0.0

replace github.com/agentjob/agentjob-go => ../
