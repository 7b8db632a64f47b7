// SPDX-License-Identifier: Apache-2.0

import java.nio.charset.StandardCharsets;
import org.tensorflow.SavedModelBundle;
import org.tensorflow.Session;
import org.tensorflow.Tensor;
import org.tensorflow.TensorFlow;

/**
 * Loads a SavedModel (examples/make_model.py) by TensorFlow's Java binding, whose JNI library is linked to libtensorflow.so.1
 * of Millrace, trains it, and asks what it has learned.
 */
public final class Train {
  public static void main(String[] args) {
    if (args.length != 1) {
      System.err.println("java Train FOLDER_OF_THE_MODEL");
      System.exit(2);
    }
    try (SavedModelBundle model = SavedModelBundle.load(args[0], "serve");
        Tensor x = Tensor.create(new float[] {-1, 0, 1, 2});
        Tensor y = Tensor.create(new float[] {-3, -1, 1, 3}); // y = 2x - 1
        Tensor ten = Tensor.create(new float[] {10})) {
      Session session = model.session();
      for (int step = 0; step < 200; ++step) {
        session.runner().feed("x", x).feed("y", y).addTarget("train").run();
      }
      try (Tensor loss = session.runner().feed("x", x).feed("y", y).fetch("loss").run().get(0);
          Tensor said = session.runner().fetch("said").run().get(0);
          Tensor predicted = session.runner().feed("x", ten).fetch("predicted").run().get(0)) {
        float[] values = new float[1];
        predicted.copyTo(values);
        System.out.printf("TensorFlow %s: loss %.4f, %s, x = 10 gives %.1f%n", TensorFlow.version(), loss.floatValue(),
            new String(said.bytesValue(), StandardCharsets.UTF_8), values[0]);
      }
    }
  }
}
