// SPDX-License-Identifier: Apache-2.0
// Groups of nodes that must be together (white paper 4.3): union-find over colocation attributes, reference edges and
// resource handles, with all that is asked for of any member.
#pragma once

#include <string>
#include <vector>

#include "passes/pipeline.h"

namespace millrace {

struct PlacementGroup {
  std::vector<Node*> members;    // in the order of the graph
  DeviceName constraint;         // what all of them ask for
  const Node* asker = nullptr;   // the first that asks
  const Node* pinned = nullptr;  // a member whose state lies on `constraint` already
  bool makes_variable = false;
  bool is_disputed = false;     // of a graph that is not placed: members ask for different devices
  std::vector<size_t> devices;  // that fit, in order of preference; more than one: to be chosen among
  std::string why;              // it is there
};

struct PlacementGroups {
  std::vector<PlacementGroup> groups;  // by their first members, in the order of the graph
  std::vector<int> group_of;           // by node id; -1: no node
};

// Whether it gives references or handles that it does not get: a variable, a queue, an iterator, a table.
bool MakesState(const Node& n);

// State is in the same place in all steps, whoever uses it in one of them: nodes of `pruned` ask for what their groups
// in the whole graph ask for, unless that contradicts itself.
Status AskAsWholeGraph(const Graph& whole, const PassEnvironment& env, Graph* pruned);

// Each loop is one more group where placement is by cost: an iteration that goes to and fro costs messages.
// InvalidArgument: members ask for different devices, and placement is not soft.
StatusOr<PlacementGroups> GroupForPlacement(const Graph& graph, const PassEnvironment& env);

// Chooses a device for each group that has several, by simulated execution, and says so in `why`; leaves that one in
// `devices`.
Status ChooseBySimulation(const Graph& graph, const PassEnvironment& env, PlacementGroups* groups);

}  // namespace millrace
