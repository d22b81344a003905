package test
import ("testing";"os";"strconv"
"github.com/kubectl-dra/kubectl-dra/pkg/snapshot/save")
func TestZZGen(t *testing.T){
 out:=os.Getenv("GENOUT"); if out=="" {t.Skip()}
 n,_:=strconv.Atoi(os.Getenv("GENN"))
 if err:=save.File(t.Context(), mixedWithWaitingPod(n), out);err!=nil{t.Fatal(err)}
}
