// SPDX-License-Identifier: Apache-2.0

// Train loads a SavedModel (examples/make_model.py) by TensorFlow's Go binding, which is linked to
// libtensorflow.so.1 or .so.2 of Millrace as its version wants, trains it, and asks what it has learned.
package main

import (
	"fmt"
	"log"
	"os"

	tf "github.com/tensorflow/tensorflow/tensorflow/go"
)

func tensor(value interface{}) *tf.Tensor {
	t, err := tf.NewTensor(value)
	if err != nil {
		log.Fatal(err)
	}
	return t
}

func main() {
	if len(os.Args) != 2 {
		log.Fatalf("%s FOLDER_OF_THE_MODEL", os.Args[0])
	}
	model, err := tf.LoadSavedModel(os.Args[1], []string{"serve"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer model.Session.Close()
	output := func(name string) tf.Output { return model.Graph.Operation(name).Output(0) }

	feeds := map[tf.Output]*tf.Tensor{
		output("x"): tensor([]float32{-1, 0, 1, 2}),
		output("y"): tensor([]float32{-3, -1, 1, 3}), // y = 2x - 1
	}
	train := []*tf.Operation{model.Graph.Operation("train")}
	for step := 0; step < 200; step++ {
		if _, err := model.Session.Run(feeds, nil, train); err != nil {
			log.Fatal(err)
		}
	}
	result, err := model.Session.Run(feeds, []tf.Output{output("loss"), output("said")}, nil)
	if err != nil {
		log.Fatal(err)
	}
	predicted, err := model.Session.Run(map[tf.Output]*tf.Tensor{output("x"): tensor([]float32{10})},
		[]tf.Output{output("predicted")}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("TensorFlow %s: loss %.4f, %s, x = 10 gives %.1f\n", tf.Version(), result[0].Value(), result[1].Value(),
		predicted[0].Value().([]float32)[0])
}
