// Package gateway is a small client of the svc-gateway over its generated code: check, act, complete. Without an answer
// nothing is done.
package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	pb "agent/gen/svc/governance/v1"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// How long a call may take, with the wait for a gateway that restarts.
const callTimeout = 5 * time.Second

// How long people have to decide on an action that waits for them.
const approvalTimeout = 15 * time.Minute

// At which a pending approval is asked for again at the earliest.
const askAgain = time.Second

// A gateway that answers is not always able to: then the call is tried again.
const retries = `{"methodConfig": [{"name": [{"service": "svc.governance.v1.PolicyService"}, {"service": "svc.governance.v1.AgentService"}],
  "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
  "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// Client is one agent, connected to its gateway. It may be used from any number of goroutines.
type Client struct {
	conn      *grpc.ClientConn
	agent     *pb.AgentId
	token     string
	policy    pb.PolicyServiceClient
	agents    pb.AgentServiceClient
	approvals pb.ApprovalServiceClient
}

// Action is what an agent wants to do.
type Action struct {
	Name             string
	Resource         string
	Attributes       map[string]any
	EstimatedCostUSD float64
}

// DeniedError says that the action must not be taken: the function given to Run was not called.
type DeniedError struct {
	Action     Action
	Reason     string
	Remedy     string
	Cause      string
	ApprovalID string
}

func (e *DeniedError) Error() string {
	text := fmt.Sprintf("%s on %s is denied: %s", e.Action.Name, e.Action.Resource, e.Reason)
	if e.Remedy != "" {
		text += "; instead: " + e.Remedy
	}
	return text
}

// Connect registers the agent, named <org>/<team>/<agent>, by an API key with write scope. The connection is not encrypted:
// for a gateway on another machine, pass the credentials of TLS in place of the insecure ones.
func Connect(ctx context.Context, address, agent, apiKey string) (*Client, error) {
	name := strings.Split(agent, "/")
	if len(name) != 3 {
		return nil, fmt.Errorf("the agent must be <org>/<team>/<agent>, and is %q", agent)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)), grpc.WithDefaultServiceConfig(retries))
	if err != nil {
		return nil, err
	}
	c := &Client{
		conn:      conn,
		agent:     &pb.AgentId{OrgId: name[0], TeamId: name[1], AgentId: name[2]},
		policy:    pb.NewPolicyServiceClient(conn),
		agents:    pb.NewAgentServiceClient(conn),
		approvals: pb.NewApprovalServiceClient(conn),
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	bearer := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+apiKey)
	registered, err := c.agents.RegisterAgent(bearer, &pb.RegisterAgentRequest{Agent: c.agent})
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("the agent cannot be registered: %w", err)
	}
	c.token = registered.CredentialToken
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Run checks the action, calls the function if it is allowed, and reports its end. People who have to approve the action are
// waited for. It returns a DeniedError, the error of the function, or that of a gateway that has not answered: then the
// function was not called, unless the error says that only the end was not reported.
func (c *Client) Run(ctx context.Context, action Action, act func(context.Context) error) error {
	attributes, err := structpb.NewStruct(action.Attributes)
	if err != nil {
		return fmt.Errorf("the attributes cannot be sent: %w", err)
	}
	// The same ids in every attempt, so that it is one operation.
	request := &pb.CheckActionRequest{
		Agent: c.agent, CredentialToken: c.token, TraceId: newID(16), SpanId: newID(8), Action: action.Name,
		Resource: action.Resource, Attributes: attributes, EstimatedCostUsd: action.EstimatedCostUSD,
	}
	answer, err := c.admitted(ctx, request)
	if err != nil {
		return err
	}
	if answer.Decision != pb.Decision_DECISION_ALLOW {
		cause := strings.ToLower(strings.TrimPrefix(answer.Cause.String(), "DECISION_CAUSE_"))
		return &DeniedError{Action: action, Reason: answer.Reason, Remedy: answer.Remedy, Cause: cause, ApprovalID: answer.ApprovalId}
	}
	failure := errors.New("the function has panicked")
	defer func() {
		if r := recover(); r != nil {
			_ = c.complete(answer, failure)
			panic(r)
		}
	}()
	failure = act(ctx)
	if err := c.complete(answer, failure); err != nil {
		return errors.Join(failure, fmt.Errorf("the end of %s is not reported: %w", answer.OpId, err))
	}
	return failure
}

// admitted is the answer of the gateway, and that of people where it leaves the action to them.
func (c *Client) admitted(ctx context.Context, request *pb.CheckActionRequest) (*pb.CheckActionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, approvalTimeout)
	defer cancel()
	for {
		answer, err := c.check(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("%s could not be checked: %w", request.Action, err)
		}
		if answer.Decision != pb.Decision_DECISION_PENDING {
			return answer, nil
		}
		if err := c.decided(ctx, answer.ApprovalId); err != nil {
			return nil, fmt.Errorf("%s waits for approval %s: %w", request.Action, answer.ApprovalId, err)
		}
	}
}

func (c *Client) check(ctx context.Context, request *pb.CheckActionRequest) (*pb.CheckActionResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.policy.CheckAction(ctx, request)
}

// decided waits until people have decided, also while the gateway restarts. What they have decided is known by asking again.
func (c *Client) decided(ctx context.Context, approvalID string) error {
	request := &pb.WaitApprovalRequest{Agent: c.agent, CredentialToken: c.token, ApprovalId: approvalID}
	for {
		answer, err := c.approvals.WaitApproval(ctx, request)
		if err == nil && answer.State != pb.ApprovalState_APPROVAL_STATE_PENDING {
			return nil
		}
		if err != nil && status.Code(err) != codes.Unavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askAgain):
		}
	}
}

// complete reports the end, also where the caller has given up meanwhile.
func (c *Client) complete(answer *pb.CheckActionResponse, failure error) error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	request := &pb.CompleteOpRequest{
		Agent: c.agent, CredentialToken: c.token, OpId: answer.OpId, OpHome: answer.OpHome, Outcome: pb.Outcome_OUTCOME_SUCCESS,
	}
	if failure != nil {
		request.Outcome = pb.Outcome_OUTCOME_FAILURE
		request.Error = strings.ToValidUTF8(fmt.Sprintf("%.1000s", failure), "")
		if len(request.Error) > 1000 {
			request.Error = strings.ToValidUTF8(request.Error[:1000], "")
		}
	}
	_, err := c.agents.CompleteOp(ctx, request)
	return err
}

func newID(bytes int) string {
	id := make([]byte, bytes)
	rand.Read(id)
	return hex.EncodeToString(id)
}
