/* Half of the round trip between two ranks, by size: a line "latency BYTES P50 P99 MAX", microseconds; then a line "end". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1000, LARGEST = 1 << 20 };

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  static char text[LARGEST];
  static double took[MOST];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(text, 'x', sizeof text);
  for (int size = 1; size <= LARGEST; size *= 2) {
    /* Twice, and the second counts: a connection, or another protocol of the library, is made at the first message. */
    for (int turn = 0; turn < 2; turn++) {
      int n = 0, last = 0;
      double until = MPI_Wtime() + (turn ? 0.1 : 0.01);
      while (!last) {
        if (rank == 0) {
          double begun = MPI_Wtime();
          last = begun > until || n == MOST - 1;
          text[0] = last ? 'e' : 'x';
          MPI_Send(text, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
          MPI_Recv(text, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          took[n++] = (MPI_Wtime() - begun) / 2 * 1e6;
        } else {
          MPI_Recv(text, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
          last = text[0] == 'e';
          MPI_Send(text, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
      }
      if (rank == 0 && turn) {
        qsort(took, n, sizeof *took, by_size);
        printf("latency\t%d\t%.1f\t%.1f\t%.1f\n", size, took[n / 2], took[n * 99 / 100], took[n - 1]);
        fflush(stdout);
      }
    }
  }
  if (rank == 0) {
    printf("end\n");
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
